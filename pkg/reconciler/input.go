// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// input is the input of the plans of one call.
type input struct {
	plan.Input
	fence    *fence
	target   types.UID
	manifest string                     // digest of all manifests
	unknown  map[string]json.RawMessage // what a newer version wrote into the inventory
}

func (r *Reconciler) applyInput(ctx context.Context, request ApplyRequest) (input, error) {
	in, err := r.input(ctx, plan.Applying, request.Owner, request.Inventory, request.Protected)
	if err != nil {
		return input{}, err
	}
	defaults, missing, err := r.defaults(request.Policies)
	if err != nil {
		return input{}, &InvalidError{Err: err}
	}
	objects, err := desired.Build(ctx, desired.Input{
		Name:            r.name,
		Owner:           in.Owner,
		Objects:         request.Objects,
		Scheme:          r.settings.scheme,
		Namespace:       request.Namespace,
		Defaults:        defaults,
		ComponentDigest: request.ComponentDigest,
		Managed:         request.ManagedTypes,
		Resolve:         r.resolve,
		Hasher:          r.settings.hasher,
		Compiler:        r.compiler,
	})
	if err != nil {
		if mistakes, invalid := errors.AsType[*desired.InvalidError](err); invalid {
			return input{}, &InvalidError{Err: mistakes.Err}
		}
		return input{}, err
	}
	if err := checkSafety(in.Input, objects, request.AllowEmpty); err != nil {
		return input{}, &InvalidError{Err: err}
	}
	in.manifest = desired.ManifestDigest(objects)
	in.Managed = request.ManagedTypes
	in.MissingNamespaces = missing
	in.Desired = objects
	return in, r.unsupported(objects)
}

// unsupported refuses annotations that are valid but not acted upon yet: to
// ignore them would be worse than to say so.
func (r *Reconciler) unsupported(objects []plan.Desired) error {
	var mistakes []error
	refuse := func(key plan.Key, annotation string) {
		mistakes = append(mistakes, fmt.Errorf("%s: annotation %s/%s is not supported yet", key, r.name, annotation))
	}
	for _, object := range objects {
		if object.Policies.RunOn != policy.RunOnApply {
			refuse(object.Key, v1alpha1.AnnotationRunOn)
		}
	}
	if len(mistakes) > 0 {
		return &InvalidError{Err: errors.Join(mistakes...)}
	}
	return nil
}

func (r *Reconciler) deleteInput(ctx context.Context, request DeleteRequest) (input, error) {
	in, err := r.input(ctx, plan.Deleting, request.Owner, request.Inventory, request.Protected)
	if err != nil {
		return input{}, err
	}
	in.Managed = request.ManagedTypes
	return in, nil
}

// input is what both kinds of requests have in common.
func (r *Reconciler) input(ctx context.Context, cause plan.Cause, owner Owner, inventory v1alpha1.Inventory, protected []Key) (input, error) {
	if owner.Kind == "" || owner.Name == "" {
		return input{}, errors.New("the owner of the objects needs a kind and a name")
	}
	if inventory.Format > v1alpha1.InventoryFormat {
		return input{}, fmt.Errorf("the inventory has format %d, and this version knows %d at most; use a newer version",
			inventory.Format, v1alpha1.InventoryFormat)
	}
	uid, err := r.target.UID(ctx)
	if err != nil {
		return input{}, err
	}
	if inventory.Target != "" && inventory.Target != uid {
		return input{}, &TargetChangedError{Recorded: string(inventory.Target), Actual: string(uid)}
	}
	return input{
		Input: plan.Input{
			Cause: cause,
			Name:  r.name,
			Owner: plan.Owner{
				ID:  digest.OwnerID(string(uid), owner.Group, owner.Kind, owner.Namespace, owner.Name),
				Ref: plan.OwnerRef{Group: owner.Group, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name, UID: owner.UID},
			},
			Recorded:  inventory.Items,
			Live:      map[plan.Key]plan.Observation{},
			Failed:    map[plan.Key]plan.Failure{},
			Protected: protectedBy(owner, protected),
		},
		target:  uid,
		unknown: inventory.Unknown,
	}, nil
}

// defaults are the policies of objects without annotations.
func (r *Reconciler) defaults(p Policies) (policy.Set, v1alpha1.MissingNamespacesPolicy, error) {
	set, err := policy.Defaults(policy.Layer{
		Adoption: p.Adoption, Update: p.Update, Delete: p.Delete, Reapply: p.ReapplyInterval,
	}, r.settings.policies)
	missing := r.settings.missingNamespaces
	if p.MissingNamespaces != "" {
		var bad error
		missing, bad = policy.ParseMissingNamespaces(p.MissingNamespaces)
		err = errors.Join(err, bad)
	}
	return set, missing, err
}

// resolve tells the scope of a type, and whether the server serves it.
func (r *Reconciler) resolve(ctx context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
	resource, err := r.target.Types().Resolve(ctx, gvk)
	_, unserved := errors.AsType[*cluster.NotServedError](err)
	_, pending := errors.AsType[*cluster.PendingTypesError](err)
	if unserved || pending {
		return false, false, nil
	}
	if err != nil {
		return false, false, err
	}
	return resource.Namespaced, true, nil
}

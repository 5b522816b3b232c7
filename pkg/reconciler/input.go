// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

type input struct {
	plan.Input
	confirmation *ownerConfirmation
	hooks        bool // objects run before or after the deletion
	urgent       bool // a user waits
	soleWriter   bool // a removed object cannot come back by a creation that is under way
	target       types.UID
	reusable     *DesiredSet                // for calls that follow; nil if it cannot be kept
	manifest     string                     // digest of all manifests
	unknown      map[string]json.RawMessage // fields of the inventory that a newer version wrote
	stored       bool                       // the objects come from a set that was stored
	resourceOf   func(schema.GroupVersionKind) (cluster.Resource, bool)
}

func (r *Reconciler) applyInput(ctx context.Context, request ApplyRequest) (input, error) {
	in, err := r.input(ctx, plan.Applying, request.Owner, request.Inventory, request.Protected)
	if err != nil {
		return input{}, err
	}
	objects, err := r.desiredObjects(ctx, &in, request)
	if err != nil {
		return input{}, err
	}
	in.Timeout, in.TimedOut, in.urgent, in.Owner.Former = request.Timeout, request.TimedOut, request.Urgent, request.Policies.AdoptOperator
	in.Desired, in.stored = objects, request.Stored
	in.Retain = make(map[plan.Key]bool, len(request.Retain))
	for _, key := range request.Retain {
		in.Retain[key] = true
	}
	if in.hooks = slices.ContainsFunc(objects, isHook); in.hooks {
		in.Desired = slices.DeleteFunc(slices.Clone(objects), isHook)
	}
	if err := checkSafety(in.Input, objects, request.AllowEmpty); err != nil {
		return input{}, &InvalidError{Err: err}
	}
	if in.RepairOnly = request.RepairOnly; in.RepairOnly {
		keepOthers(&in.Input)
	}
	in.confirmation = &ownerConfirmation{confirm: request.Confirm, now: r.settings.Now}
	return in, nil
}

// keepOthers leaves in a plan the objects that were made of their desired manifests, and depend on no other. Nothing is removed.
func keepOthers(in *plan.Input) {
	made := make(map[plan.Key]string, len(in.Recorded))
	for _, item := range in.Recorded {
		made[plan.KeyOf(item)], in.Retain[plan.KeyOf(item)] = item.Digest, true
	}
	for _, d := range in.Desired {
		if d.Shared {
			made[d.Key] = d.Digest
		}
	}
	in.Desired = slices.Clone(in.Desired)
	for before := -1; before != len(in.Desired); {
		before = len(in.Desired)
		in.Desired = slices.DeleteFunc(in.Desired, func(d plan.Desired) bool {
			lacks := func(r policy.Reference) bool { return made[plan.Key(r)] == "" }
			other := made[d.Key] != d.Digest || slices.ContainsFunc(d.Policies.DependsOn, lacks)
			if other {
				delete(made, d.Key)
			}
			return other
		})
	}
}

// build makes desired objects of rendered ones, under the policies of the request.
func (r *Reconciler) build(ctx context.Context, in *input, from desired.Input, policies Policies) ([]plan.Desired, error) {
	if from.Resolve == nil {
		from.Resolve = r.resolve
	}
	defaults, missing, err := r.defaults(policies)
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	in.MissingNamespaces, in.ManagedTypes = missing, from.Managed
	from.Name, from.Owner, from.Defaults, from.IgnoreRules = r.name, in.Owner, defaults, r.settings.ignoreRules
	from.Scheme, from.Hasher, from.Compiler = r.settings.Scheme, r.settings.hasher, r.compiler
	objects, err := desired.Build(ctx, from)
	if mistakes, invalid := errors.AsType[*desired.InvalidError](err); invalid {
		return nil, &InvalidError{Err: mistakes.Err}
	}
	return objects, err
}

func isHook(object plan.Desired) bool { return object.Policies.RunOn != policy.RunOnApply }

func (r *Reconciler) deleteInput(ctx context.Context, request DeleteRequest) (input, error) {
	in, err := r.input(ctx, plan.Deleting, request.Owner, request.Inventory, request.Protected)
	if err != nil {
		return input{}, err
	}
	in.ManagedTypes = slices.Concat(request.ManagedTypes, r.shared.defined())
	in.Timeout, in.Owner.Former = request.Timeout, request.Policies.AdoptOperator
	in.confirmation = &ownerConfirmation{confirm: request.Confirm, now: r.settings.Now}
	in.hooks, in.soleWriter = request.Inventory.DeleteHooks, request.SoleWriter
	return in, nil
}

func (r *Reconciler) addHooks(ctx context.Context, in *input, request DeleteRequest) error {
	if !in.hooks || request.SkipHooks {
		return nil
	}
	if len(request.Objects) == 0 {
		return &InvalidError{Err: fmt.Errorf(
			"%s has objects that run before or after its deletion, and they were not rendered; without them it is deleted with the annotation %s/%s: \"true\"",
			in.Owner.Ref.Title(), r.name, vocabulary.AnnotationSkipDeleteHooks)}
	}
	objects, err := r.build(ctx, in, desired.Input{
		Objects: request.Objects, Namespace: request.Namespace, ComponentDigest: request.ComponentDigest, Managed: in.ManagedTypes,
		HooksOnly: true,
	}, request.Policies)
	if err != nil {
		return err
	}
	if err := checkSafety(in.Input, objects, true); err != nil {
		return &InvalidError{Err: err}
	}
	in.Desired = objects
	return nil
}

func (r *Reconciler) input(ctx context.Context, cause plan.Cause, owner Owner, inventory v1alpha1.Inventory, protected []report.Key) (input, error) {
	if owner.Kind == "" || owner.Name == "" {
		return input{}, errors.New("the owner of the objects needs a kind and a name")
	}
	if inventory.Format > v1alpha1.InventoryFormat {
		return input{}, fmt.Errorf("the inventory has format %d, and this version knows %d at most; use a newer version",
			inventory.Format, v1alpha1.InventoryFormat)
	}
	uid, err := r.identify(ctx, inventory.Target)
	if err != nil {
		return input{}, err
	}
	me := plan.Owner{
		ID:  digest.OwnerID(string(uid), owner.Group, owner.Kind, owner.Namespace, owner.Name),
		Ref: plan.OwnerRef(owner),
	}
	if slices.ContainsFunc(inventory.Items, func(item v1alpha1.InventoryItem) bool { return item.Inherited }) {
		home, err := r.homeUID(ctx)
		if err != nil {
			return input{}, err
		}
		me.SAPOwnerID = digest.ForeignOwnerID(string(home), owner.Namespace, owner.Name)
	}
	protectedKeys := map[plan.Key]bool{{Group: owner.Group, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}: true}
	for _, key := range protected {
		protectedKeys[key] = true
	}
	return input{
		Input: plan.Input{
			Cause:          cause,
			Name:           r.name,
			Owner:          me,
			Recorded:       r.shared.released(inventory.Items),
			Live:           make(map[plan.Key]plan.Observation, len(inventory.Items)),
			Failed:         map[plan.Key]plan.Failure{},
			DryRunAccepted: map[plan.Key]bool{},
			Protected:      protectedKeys,
		},
		target:     uid,
		unknown:    inventory.Unknown,
		resourceOf: r.target.Types().Known,
	}, nil
}

// identify returns the uid or the address of the target. It must equal the recorded identity, if
// there is one, and like is compared with like: a target that was recorded by address is known by
// address, also if the uid may be read by now; a target that was recorded by uid is never known by
// address.
func (r *Reconciler) identify(ctx context.Context, recorded types.UID) (types.UID, error) {
	uid, err := r.target.UID(ctx)
	switch {
	case err != nil && isAnswer(err):
		return "", &UnidentifiedTargetError{Server: r.target.Config().Host, Err: err}
	case err != nil:
		return "", err
	case recorded == "" || recorded == uid:
		return uid, nil
	case cluster.IsAddress(recorded) && recorded == r.target.Address():
		return recorded, nil
	default:
		return "", &TargetChangedError{Recorded: string(recorded), Actual: string(uid)}
	}
}

// homeUID identifies the cluster that the owner is in, if the target knows, or else the target.
func (r *Reconciler) homeUID(ctx context.Context) (types.UID, error) {
	if target, ok := r.target.(interface {
		HomeUID(ctx context.Context) (types.UID, error)
	}); ok {
		return target.HomeUID(ctx)
	}
	return r.target.UID(ctx)
}

// isAnswer reports whether an error is an answer that will be the same the next time.
func isAnswer(err error) bool {
	if status, ok := errors.AsType[*apierrors.StatusError](err); ok {
		code := status.ErrStatus.Code
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError && code != http.StatusTooManyRequests
	}
	return !cluster.IsUnreachable(err) && !errors.Is(err, context.Canceled)
}

// defaults are the policies of objects without annotations.
func (r *Reconciler) defaults(p Policies) (policy.Set, v1alpha1.MissingNamespacesPolicy, error) {
	var from []string
	var beside string
	if release := p.AdoptHelmRelease; release != nil {
		from = append(from, policy.HelmRelease(release.Namespace, release.Name))
		if flux := release.Flux; flux.Name != "" {
			// The record names the release, and users of the namespace of the release may forge it:
			// an object that is labelled in another namespace has to be an object of the release as
			// well.
			if title := policy.FluxRelease(flux.Namespace, flux.Name); flux.Namespace == release.Namespace {
				from = append(from, title)
			} else {
				beside = title
			}
		}
	}
	set, err := policy.Defaults(policy.Layer{
		Adoption: p.Adoption, AdoptFrom: from, AdoptBeside: beside, Update: p.Update, Delete: p.Delete, Drift: p.Drift, Reapply: p.ReapplyInterval,
	}, r.settings.policies)
	missing, invalid := policy.ParseMissingNamespaces(cmp.Or(p.MissingNamespaces, r.settings.missingNamespaces))
	return set, missing, errors.Join(err, invalid)
}

// resolve returns the scope of a type, and whether the server serves it.
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
	if !resource.Can("create") || !resource.Can("get") || !resource.Can("delete") {
		// The server creates no objects while their definition is being deleted. The next
		// definition of the name allows that.
		r.target.Types().Forget(gvk)
		return false, true, desired.ErrUnmanageable
	}
	return resource.Namespaced, true, nil
}

// checkSafety refuses sets of objects that would destroy their own prerequisites.
func checkSafety(in plan.Input, objects []plan.Desired, allowEmpty bool) error {
	var mistakes []error
	for _, object := range objects {
		// A namespace is only kept from deletion: its existence is all that is needed of it.
		if in.Protected[object.Key] && object.Key.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
			mistakes = append(mistakes, fmt.Errorf("%s: %s needs it, or is it, and cannot manage it itself", object.Key, in.Owner.Ref.Title()))
		}
		for _, defined := range object.Defines {
			if cluster.IsBuiltIn(defined.Group) {
				mistakes = append(mistakes, fmt.Errorf(
					"%s: the group %q belongs to the cluster itself and cannot be served by anything else", object.Key, defined.Group))
			}
		}
	}
	if len(in.Desired) == 0 && !allowEmpty {
		mistakes = append(mistakes, checkEmpty(in))
	}
	return errors.Join(mistakes...)
}

// checkEmpty returns an error that names objects that would be lost if no object were desired any more.
func checkEmpty(in plan.Input) error {
	lost := slices.DeleteFunc(slices.Clone(in.Recorded), func(item v1alpha1.InventoryItem) bool {
		return policy.OrphansOnApply(item.DeletePolicy) || item.Phase == vocabulary.PhaseCompleted || item.Phase == vocabulary.PhaseReleased
	})
	if len(lost) == 0 {
		return nil
	}
	return fmt.Errorf(
		"no object is desired, so everything that was applied (%d objects, such as %s) would be deleted; if that is meant, set the annotation %s/%s: \"true\" on %s",
		len(lost), plan.KeyOf(lost[0]), in.Name, vocabulary.AnnotationAllowEmpty, in.Owner.Ref.Title())
}

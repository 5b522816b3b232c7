// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/outputs"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// opener finds out how a reconcile of a component starts: its configuration, the objects that its spec refers to, and a connection
// to its target cluster. It is immutable.
type opener struct {
	self      identity.Operator
	settings  settings
	author    authorType
	code      *userCode
	local     client.Client // reads from the server
	mapper    meta.RESTMapper
	digestKey func(context.Context) ([]byte, error)
	targets   targetClusters
	watches   *targets.Watches // may be nil
	outputs   outputs.Publisher
	now       func() time.Time
}

// targetClusters is targets.Targets.
type targetClusters interface {
	Connect(access target.Access, component client.ObjectKey) (targets.Connection, error)
	SetEngine(owner reconciler.Owner, connection targets.Connection)
	ForgetOwner(owner reconciler.Owner)
}

// resolve returns the configuration and the access of a component, and loads its references. The error is an InvalidError with all
// mistakes in the component. Mistakes are the ones that the caller has found. Absent says which references cannot be loaded.
func (o *opener) resolve(ctx context.Context, obj Component, mistakes error, load func(context.Context, Component) references.Absence) (resolved resolvedConfig, access target.Access, absent, err error) {
	resolved, configErr := resolveConfig(obj, o.settings)
	_, suspendErr := o.suspensionOf(obj)
	found, _ := o.author.finder.Find(specOf(obj))
	required := o.terms().Mistakes(found, obj, func() map[string]any { return obj.GetSpec().ToUnstructured() })
	if err := errors.Join(configErr, suspendErr, mistakes, references.Mistakes(found, obj.GetNamespace()), required); err != nil {
		return resolved, access, nil, &verdict.InvalidError{Err: o.self.About(obj, err)}
	}
	absent = load(ctx, obj).Err()
	if access, err = accessOf(obj, o.settings); err != nil {
		return resolved, access, absent, cmp.Or(absent, error(&verdict.InvalidError{Err: o.self.About(obj, err)}))
	}
	return resolved, access, absent, nil
}

// terms returns what the requirements of components have to keep to.
func (o *opener) terms() references.Terms {
	return references.Terms{Kind: o.self.Kind.GroupKind(), Namespaces: o.settings.users.RequireNamespaces, Mapper: o.mapper}
}

// basicContext is the context of all hooks.
func (o *opener) basicContext(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.ReconcilerName, known.LocalClient = o.self.Name, confidential.NotingClient(o.local)
	return known.In(ctx)
}

// maxReconcileAt is how much of the value of an annotation that asks for a reconcile is recorded, in bytes.
//
// Unit: bytes
// Limit: the value of the annotation reconcile-at that the status records; the rest is cut.
const maxReconcileAt = 128

// reconcileAt returns the request of a user for a reconcile. Of two it is the later, and what
// is no time in the form of RFC 3339 counts as earlier than any.
func (o *opener) reconcileAt(obj Component) string {
	own, flux := o.self.Value(obj, vocabulary.AnnotationReconcileAt), obj.GetAnnotations()[vocabulary.AnnotationReconcileRequestedAt]
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339, text) // zero if it is none
		return t
	}
	if own == "" || at(flux).After(at(own)) {
		own = flux
	}
	return sentence.Shorten(own, maxReconcileAt)
}

// applyRequest returns the request to apply objects that were rendered, or are known from an earlier reconcile.
func (o *opener) applyRequest(obj Component, known renderCache, rendered []client.Object, inventory v1alpha1.Inventory) (reconciler.ApplyRequest, error) {
	protected, err := o.protected(obj)
	if err != nil {
		return reconciler.ApplyRequest{}, err
	}
	_, reason, _ := obj.GetStatus().GetState() // it was reported first, so that a rollback comes before anything is removed
	timedOut := reason == vocabulary.ReasonTimeout && revision.Of(obj).TimedOut(intervalsOf(obj).Timeout, o.now())
	request := reconciler.ApplyRequest{
		Owner:           o.self.Owner(obj),
		Namespace:       known.config.Namespace,
		Objects:         rendered,
		Desired:         known.desired,
		Inventory:       inventory,
		ComponentDigest: known.digest,
		Policies:        known.config.policies,
		ManagedTypes:    known.config.managedTypes,
		Timeout:         intervalsOf(obj).Timeout,
		AllowEmpty:      known.allowEmpty,
		TimedOut:        timedOut,
		RepairOnly:      known.meanwhile == repair,
		Stored:          known.meanwhile != "" || known.pin.IsSet(),
		Protected:       protected,
	}
	if known.pin.IsSet() {
		request.Retain = revision.Retained(inventory.Items, known.pinned.Hooks)
	}
	return request, nil
}

// manifestDigest returns a function for the digest of the manifests that would be applied.
func (o *opener) manifestDigest(t targets.Connection, resolved resolvedConfig) revision.ManifestDigest {
	return func(ctx context.Context, obj identity.Component, objects []client.Object, digest string) (string, error) {
		request, err := o.applyRequest(obj, renderCache{inputs: inputs{config: resolved, allowEmpty: true}, appliedRevision: appliedRevision{digest: digest}}, objects, v1alpha1.Inventory{})
		if err != nil {
			return "", err
		}
		return t.Engine.ManifestDigest(ctx, request)
	}
}

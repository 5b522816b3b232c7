// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// applyRequest returns what the engine is asked for: to apply what was rendered, or is known from an
// earlier reconcile.
func (o *opener) applyRequest(obj Component, known prepared, rendered []client.Object, inventory v1alpha1.Inventory) (reconciler.ApplyRequest, error) {
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
		RepairOnly:      known.waits == repair,
		Stored:          known.waits != "" || known.pin.IsSet(),
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
		request, err := o.applyRequest(obj, prepared{directives: directives{config: resolved, allowEmpty: true}, set: set{digest: digest}}, objects, v1alpha1.Inventory{})
		if err != nil {
			return "", err
		}
		return t.Engine.ManifestDigest(ctx, request)
	}
}

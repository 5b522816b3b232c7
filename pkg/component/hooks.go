// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// runHooks calls the hooks of a point in their order, until one fails. An error
// that declares itself to be ignored (result.Generic) is logged.
func (h *handler[T]) runHooks(ctx context.Context, point hookPoint, obj T) error {
	if len(h.code.hooks[point]) == 0 {
		return nil
	}
	return h.telemetry.Part(ctx, metrics.PhaseHooks, func(ctx context.Context) error {
		return h.code.runHooks(ctx, point, obj)
	})
}

// ClientFromContext returns a client for the deployment target: the cluster and
// the user that the dependent objects are written as. It reads from the
// server. It is there in generators and in all hooks but the post-read hooks;
// elsewhere there is an error.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	return manifests.ClientFromContext(ctx)
}

// LocalClientFromContext returns a client for the cluster that the component lives
// in, with the identity of the operator. It reads from the server.
func LocalClientFromContext(ctx context.Context) (client.Client, error) {
	return manifests.LocalClientFromContext(ctx)
}

// ReconcilerNameFromContext returns the name of the reconciler.
func ReconcilerNameFromContext(ctx context.Context) (string, error) {
	return manifests.ReconcilerNameFromContext(ctx)
}

// ComponentFromContext returns the component, which must not be changed.
func ComponentFromContext(ctx context.Context) (Component, error) {
	object, err := manifests.ComponentFromContext(ctx)
	if err != nil {
		return nil, err
	}
	component, ok := object.(Component)
	if !ok {
		return nil, fmt.Errorf("the context holds a %T, which is no component", object)
	}
	return component, nil
}

// ComponentNameFromContext returns the name of the component.
func ComponentNameFromContext(ctx context.Context) (string, error) {
	return manifests.ComponentNameFromContext(ctx)
}

// ComponentNamespaceFromContext returns the namespace of the component; it is
// empty for a cluster-scoped one.
func ComponentNamespaceFromContext(ctx context.Context) (string, error) {
	return manifests.ComponentNamespaceFromContext(ctx)
}

// ComponentDigestFromContext returns the digest of the component: it is another
// one when the spec, the annotations, the generator or what a reference holds has changed.
func ComponentDigestFromContext(ctx context.Context) (string, error) {
	return manifests.ComponentDigestFromContext(ctx)
}

// ComponentRevisionFromContext returns the revision of the component, counting from 1. A
// new one starts when the generator, its parameters, the patches of the component or what
// a reference holds has changed.
func ComponentRevisionFromContext(ctx context.Context) (int64, error) {
	return manifests.ComponentRevisionFromContext(ctx)
}

// basicContext is what all hooks get.
func (h *handler[T]) basicContext(ctx context.Context, obj T) context.Context {
	ctx = manifests.WithReconcilerName(ctx, h.settings.name)
	ctx = manifests.WithLocalClient(ctx, confidential.NotingClient(h.local))
	ctx = manifests.WithComponentName(ctx, obj.GetName())
	return manifests.WithComponentNamespace(ctx, obj.GetNamespace())
}

// fullContext adds what generators and the hooks around apply and delete get.
func fullContext(ctx context.Context, t targets.Connection, componentDigest string, status *Status) context.Context {
	if t.Client != nil {
		ctx = manifests.WithClient(ctx, confidential.NotingClient(t.Client))
	}
	if t.Target != nil {
		ctx = manifests.WithTarget(ctx, t.Target)
	}
	ctx = manifests.WithComponentDigest(ctx, componentDigest)
	ctx = manifests.WithComponentRevision(ctx, status.Revision)
	return manifests.WithComponentInstallation(ctx, status.installs())
}

// render renders the dependent objects, and returns those to apply: those of the revision that
// the component is pinned to, if it is.
func (h *handler[T]) render(ctx context.Context, renderer *rendering.Renderer, obj T, request rendering.Request, p pin, last *rendering.Last) (rendering.Rendering, error) {
	if p.isSet() {
		return h.restore(ctx, renderer, obj, request, p, last)
	}
	return renderer.Render(ctx, request, last)
}

// reportSlow calls render, and writes into the status what it works on if it takes long. A verdict about this
// generation stays, but for one that an earlier revision is ready: the same rendering may lead to it again.
func (h *handler[T]) reportSlow(ctx context.Context, obj T, commit session.Commit, render func(context.Context) error) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, at := manifests.WithProgress(ctx)
	var refused error
	ctx = guard.WithSlow(ctx, h.code.slowAfter, func(passed time.Duration) {
		state, _, _ := obj.GetStatus().GetState()
		if obj.GetStatus().ObservedGeneration == obj.GetGeneration() && state != StatePending && state != StateProcessing || refused != nil {
			return
		}
		message := fmt.Sprintf("the manifests have been rendered for %s: %s", passed.Round(time.Second), cmp.Or(at(), "generator"))
		h.setVerdict(obj, verdict.Evaluate(verdict.Facts{Waiting: message}))
		if refused = commit(outer); refused != nil {
			cancel()
		}
	})
	err := render(ctx)
	return cmp.Or(refused, err)
}

// renderRequest returns what is rendered for a component. The digest is that of the revision;
// rendered says that the revision was rendered before.
func (h *handler[T]) renderRequest(obj T, resolved resolvedConfig, digest string, rendered bool) rendering.Request {
	status := obj.GetStatus()
	request := rendering.Request{
		Component: obj, Namespace: resolved.namespace, Name: resolved.name,
		Revision: revisions.Revision{Number: status.Revision, Digest: digest}, Rendered: rendered,
		Adopted: resolved.adopted, HooksRan: status.takesOver(),
		Retention: revisions.Retention{Limit: h.settings.historyLimit},
	}
	if current := status.currentRevision(); current != nil {
		request.Stored = current.Digest
	}
	if ready := status.lastReady(); ready != nil {
		request.LastReady = ready.Revision
	}
	return request
}

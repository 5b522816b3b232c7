// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// runHooks calls the hooks of a point in their order, until one fails. An error
// that declares itself to be ignored (result.Generic) is logged.
func (h *handler) runHooks(ctx context.Context, point hookPoint, obj Component) error {
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
// elsewhere there is an error. What else a context holds, manifests.FromContext returns.
func ClientFromContext(ctx context.Context) (client.Client, error) {
	if c := manifests.FromContext(ctx).Client; c != nil {
		return c, nil
	}
	return nil, errors.New("the context holds no client of the target cluster")
}

// basicContext is what all hooks get.
func (h *handler) basicContext(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.ReconcilerName, known.LocalClient = h.self.Name, confidential.NotingClient(h.local)
	return known.In(ctx)
}

// fullContext adds what generators and the hooks around apply and delete get.
func fullContext(ctx context.Context, t targets.Connection, componentDigest string, status *revision.Status) context.Context {
	if t.Target != nil {
		ctx = renders.WithTarget(ctx, t.Target)
	}
	known := manifests.FromContext(ctx)
	if t.Client != nil {
		known.Client = confidential.NotingClient(t.Client)
	}
	known.Digest, known.Revision, known.Upgrade = componentDigest, status.Revision, !status.Installs()
	return known.In(ctx)
}

// previewContext says to generators and hooks that objects are only shown.
func previewContext(ctx context.Context) context.Context {
	known := manifests.FromContext(ctx)
	known.Preview = true
	return known.In(ctx)
}

// render renders the dependent objects, and returns those to apply: those of the revision that
// the component is pinned to, if it is.
func (h *handler) render(ctx context.Context, renderer *rendering.Renderer, obj Component, request rendering.Request, p revision.Pin, last *rendering.Last) (rendering.Rendering, error) {
	if p.IsSet() {
		return h.restore(ctx, renderer, obj, request, p, last)
	}
	return renderer.Render(ctx, request, last)
}

// reportSlow calls render, and writes into the status what it works on if it takes long. A verdict about this
// generation stays, but for one that an earlier revision is ready: the same rendering may lead to it again.
func (h *handler) reportSlow(ctx context.Context, obj Component, commit session.Commit, render func(context.Context) error) error {
	outer := ctx
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ctx, at := renders.WithProgress(ctx)
	var refused error
	ctx = guard.WithSlow(ctx, h.code.slowAfter, func(passed time.Duration) {
		state, _, _ := obj.GetStatus().GetState()
		if obj.GetStatus().ObservedGeneration == obj.GetGeneration() && state != v1alpha1.StatePending && state != v1alpha1.StateProcessing || refused != nil {
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
func (h *handler) renderRequest(obj Component, resolved resolvedConfig, digest string, rendered bool) rendering.Request {
	status := revision.Of(obj)
	request := rendering.Request{
		Component: obj, Namespace: resolved.namespace, Name: resolved.name,
		Revision: revisions.Revision{Number: status.Revision, Digest: digest}, Rendered: rendered,
		Adopted: resolved.adopted, HooksRan: status.AdoptsRelease(),
		Retention: revisions.Retention{Limit: h.settings.historyLimit},
	}
	if current := status.Current(); current != nil {
		request.Stored = current.Digest
	}
	if ready := status.LastReady(); ready != nil {
		request.LastReady = ready.Revision
	}
	return request
}

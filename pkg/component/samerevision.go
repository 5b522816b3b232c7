// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// A generator that renders the same leaves the digests as they are; the history names it, so that the objects are compared once.

// withEarlierGenerator returns the digests that the component would have with the generator that its status was made with, and the
// revision that this one has rendered, if nothing else has changed since. Otherwise the revision is nil.
func (h *handler) withEarlierGenerator(ctx context.Context, obj Component, now digests) (digests, *v1alpha1.RevisionStatus, error) {
	status := obj.GetStatus()
	recorded, current, rollback := status.processing(), status.currentRevision(), status.Rollback
	candidates := []string{recorded.generator}
	if recorded.generator == "" { // it is of an earlier build, in which fewer generators had a digest
		before, _, _ := strings.Cut(now.from, "+")
		candidates = []string{"=", before}
	}
	for _, before := range candidates {
		if current == nil || before == now.from {
			continue
		}
		earlier, err := h.digestsWith(ctx, obj, before[1:])
		if err != nil {
			return now, nil, err
		}
		earlier.generator = now.generator
		switch {
		case rollback != nil && earlier.revision == rollback.Digest:
			return earlier, status.revisionInHistory(rollback.From), nil
		case rollback == nil && earlier.revision == recorded.revision:
			return earlier, current, nil
		case rollback == nil && current.RollbackTo != 0 && earlier.component == recorded.component: // it is pinned, so nothing is rendered
			return earlier, &v1alpha1.RevisionStatus{Generator: now.generator}, nil
		}
	}
	return now, nil, nil
}

// sameRevision returns the digests that the component goes on with. An error of the generator is for the start of its revision.
func (h *handler) sameRevision(ctx context.Context, obj Component, t targets.Connection, resolved resolvedConfig, generator manifests.Generator, now digests) (digests, error) {
	earlier, of, err := h.withEarlierGenerator(ctx, obj, now)
	if err != nil || of == nil {
		return now, err
	}
	same, err := h.rendersSame(ctx, obj, t, resolved, generator, earlier, of)
	switch {
	case err != nil && ctx.Err() != nil, cluster.IsUnavailable(err), isServerFailure(err):
		return now, h.about(obj, err)
	case err != nil || !same:
		return now, nil
	}
	of.Generator = now.generator
	return earlier, nil
}

// isServerFailure reports whether the API server failed to answer, and may answer later.
func isServerFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// rendersSame compares what the generator renders with what is known of a revision: in the history, or else in the status.
func (h *handler) rendersSame(ctx context.Context, obj Component, t targets.Connection, resolved resolvedConfig, generator manifests.Generator, earlier digests, of *v1alpha1.RevisionStatus) (bool, error) {
	next, err := copyOf(obj)
	if err != nil {
		return false, err
	}
	next.GetStatus().Revision = of.Revision
	ctx = previewContext(fullContext(ctx, t, earlier.component, next.GetStatus()))
	recorded := obj.GetStatus().processing()
	if left, err := h.code.previewHooks(ctx, preReconcile, next); err != nil || len(left) > 0 && recorded.generator != "" {
		return false, err // a hook that does not run here may make another rendering
	}
	renderer := *h.renderer
	renderer.Generator, renderer.Preview = generator, true
	rendered, err := renderer.Render(ctx, h.renderRequest(next, resolved, earlier.revision, true), &rendering.Last{})
	if err != nil {
		return false, err
	}
	if of.Digest != "" {
		if stored, err := renderer.Revisions.Identify(ctx, rendered.Namespace, rendered.Digest); err != nil || stored == of.Digest {
			return err == nil, err
		}
	}
	apply, err := h.applyRequest(next, prepared{config: resolved, digest: recorded.component, allowEmpty: true}, rendered.Objects, v1alpha1.Inventory{})
	if err != nil || recorded.revision != earlier.revision || recorded.manifests == "" {
		return false, err
	}
	manifest, err := t.Engine.ManifestDigest(ctx, apply)
	return manifest == recorded.manifests, err
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"errors"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
)

// A generator that renders the same leaves the digests as they are; the history names it, so that the objects are compared once.

// withEarlierGenerator returns the digests that the component would have with the generator that its status was made with, and the
// revision that this one has rendered, if nothing else has changed since. Otherwise the revision is nil.
func (s *Source) withEarlierGenerator(ctx context.Context, obj identity.Component, now Digests) (Digests, *v1alpha1.RevisionStatus, error) {
	status := Of(obj)
	recorded, current, rollback := status.Processing(), status.Current(), status.Rollback
	candidates := []string{recorded.Generator}
	if recorded.Generator == "" { // it is of an earlier build, in which fewer generators had a digest
		before, _, _ := strings.Cut(now.From, "+")
		candidates = []string{"=", before}
	}
	for _, before := range candidates {
		if current == nil || before == now.From {
			continue
		}
		earlier, err := s.digestsWith(ctx, obj, before[1:])
		if err != nil {
			return now, nil, err
		}
		earlier.Generator = now.Generator
		switch {
		case rollback != nil && earlier.Revision == rollback.Digest:
			return earlier, status.Entry(rollback.From), nil
		case rollback == nil && earlier.Revision == recorded.Revision:
			return earlier, current, nil
		case rollback == nil && current.RollbackTo != 0 && earlier.Component == recorded.Component: // it is pinned, so nothing is rendered
			return earlier, &v1alpha1.RevisionStatus{Generator: now.Generator}, nil
		}
	}
	return now, nil, nil
}

// sameRevision returns the digests that the component goes on with. An error of the generator is for the start of its revision.
func (s *Source) sameRevision(ctx context.Context, obj identity.Component, t targets.Connection, d Deployment, now Digests, manifest ManifestDigest) (Digests, error) {
	earlier, of, err := s.withEarlierGenerator(ctx, obj, now)
	if err != nil || of == nil {
		return now, err
	}
	same, err := s.Preview(s.Renderer.Generator).rendersSame(ctx, obj, t, d, earlier, of, manifest)
	switch {
	case err != nil && ctx.Err() != nil, cluster.IsUnavailable(err), isServerFailure(err):
		return now, s.Self.About(obj, err)
	case err != nil || !same:
		return now, nil
	}
	of.Generator = now.Generator
	return earlier, nil
}

// isServerFailure reports whether the API server failed to answer, and may answer later.
func isServerFailure(err error) bool {
	var status apierrors.APIStatus
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}

// rendersSame compares what the generator renders with what is known of a revision: in the history, or else in the status.
func (s *Source) rendersSame(ctx context.Context, obj identity.Component, t targets.Connection, d Deployment, earlier Digests, of *v1alpha1.RevisionStatus, manifest ManifestDigest) (bool, error) {
	next, err := identity.Copy(obj)
	if err != nil {
		return false, err
	}
	next.GetStatus().Revision = of.Revision
	ctx = InPreview(InRevision(ctx, t, earlier.Component, Of(next)))
	recorded := Of(obj).Processing()
	if left, err := s.Hooks(ctx, next); err != nil || len(left) > 0 && recorded.Generator != "" {
		return false, err // a hook that does not run here may make another rendering
	}
	rendered, err := s.Renderer.Render(ctx, s.Request(next, d, earlier.Revision, true), &rendering.Last{})
	if err != nil {
		return false, err
	}
	if of.Digest != "" {
		if stored, err := s.Renderer.Revisions.Identify(ctx, rendered.Namespace, rendered.Digest); err != nil || stored == of.Digest {
			return err == nil, err
		}
	}
	if recorded.Revision != earlier.Revision || recorded.Manifests == "" {
		return false, nil
	}
	digest, err := manifest(ctx, next, rendered.Objects, recorded.Component)
	return digest == recorded.Manifests, err
}

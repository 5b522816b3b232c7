// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/types"
)

// noisyAnnotations are written by tools for their own use; a change of them is no change of the component.
var noisyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff-md5",
	"objectset.rio.cattle.io/applied",
}

// Digests identify the state of a component.
type Digests struct {
	// Component covers the whole spec, the annotations, the references and the generator. Another one restarts the timeout.
	Component string
	// Revision covers the generator, its parameters, the patches and the references, and no other field of the spec.
	Revision string
	// Generator identifies the generator as histories do.
	Generator string
	// From is "=" and the digest of the generator in Component and Revision, which may be an earlier generator.
	From string
}

// digestsWith returns the digests of a component for the digest of a generator. They cover what its references have loaded.
func (s *Source) digestsWith(ctx context.Context, obj identity.Component, generator string) (Digests, error) {
	key, err := s.DigestKey(ctx)
	if err != nil {
		return Digests{}, err
	}
	annotations := maps.Clone(obj.GetAnnotations())
	for _, request := range []string{vocabulary.AnnotationReconcileAt, vocabulary.AnnotationPreview, vocabulary.AnnotationRollout} {
		delete(annotations, s.Self.Annotation(request))
	}
	delete(annotations, vocabulary.AnnotationReconcileRequestedAt)
	if len(annotations) == 0 {
		annotations = nil // no annotations and none but requests are the same
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(noisyAnnotations, key) })
	annotationsJSON, err := json.Marshal(annotations)
	if err != nil {
		return Digests{}, fmt.Errorf("digest of the annotations: %w", err)
	}
	parametersJSON, err := Parameters(s.Renderer.Parameters(obj))
	if err != nil {
		return Digests{}, err
	}
	var patchesJSON []byte // they change the rendered objects, hooks included
	if patches, images := s.Renderer.Patches(obj); len(patches) > 0 || len(images) > 0 {
		if patchesJSON, err = json.Marshal([]any{patches, images}); err != nil {
			return Digests{}, fmt.Errorf("digest of the patches: %w", err)
		}
	}
	hasher := digest.Hasher{Key: key}
	whole := []string{strconv.FormatInt(obj.GetGeneration(), 10), string(annotationsJSON), string(parametersJSON)}
	rendered := []string{string(parametersJSON), string(patchesJSON)}
	for _, reference := range s.References(obj) {
		if reference.IgnoredByDigest() {
			continue
		}
		content, loads := reference.Digest(hasher)
		whole = append(whole, reference.Path, content)
		if loads {
			rendered = append(rendered, reference.Path, content)
		}
	}
	if generator != "" {
		whole, rendered = append(whole, "generator", generator), append(rendered, "generator", generator)
	}
	return Digests{Component: hasher.Combine(whole...), Revision: hasher.Combine(rendered...), Generator: GeneratorID(generator), From: "=" + generator}, nil
}

// Parameters returns the parameters of the generator as JSON, in which maps are in the order of their keys: equal content is equal text.
func Parameters(spec types.Unstructurable) ([]byte, error) {
	var parameters map[string]any
	if !renders.IsNil(spec) {
		parameters = spec.ToUnstructured()
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("digest of the spec: %w", err)
	}
	return text, nil
}

// GeneratorID identifies a generator by its digest, as histories do, without the digest key; it is empty if the generator reports none.
func GeneratorID(sum string) string {
	if sum == "" {
		return ""
	}
	return digest.Combine("generator", sum)[:16]
}

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
	ctx = InPreview(ContextWithRevision(ctx, t, earlier.Component, Of(next)))
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
	sum, err := manifest(ctx, next, rendered.Objects, recorded.Component)
	return sum == recorded.Manifests, err
}

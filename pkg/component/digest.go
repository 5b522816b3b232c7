// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// fluxRequestedAt is the annotation by which Flux asks for a reconcile.
const fluxRequestedAt = vocabulary.AnnotationReconcileRequestedAt

// maxReconcileAt is how much of the value of such an annotation is recorded, in bytes.
//
// Unit: bytes
// Limit: the value of the annotation reconcile-at that the status records; the rest is cut.
const maxReconcileAt = 128

// reconcileAt returns the request of a user for a reconcile. Of two it is the later, and what
// is no time in the form of RFC 3339 counts as earlier than any.
func (h *handler) reconcileAt(obj Component) string {
	own, flux := obj.GetAnnotations()[h.settings.name+"/"+vocabulary.AnnotationReconcileAt], obj.GetAnnotations()[fluxRequestedAt]
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339, text) // zero if it is none
		return t
	}
	if own == "" || at(flux).After(at(own)) {
		own = flux
	}
	return sentence.Shorten(own, maxReconcileAt)
}

// noisyAnnotations are written by tools for their own use; a change of them is no
// change of the component.
var noisyAnnotations = []string{
	"kubectl.kubernetes.io/last-applied-configuration",
	"kapp.k14s.io/original",
	"kapp.k14s.io/original-diff-md5",
	"objectset.rio.cattle.io/applied",
}

// digests identify the state of a component.
type digests struct {
	// component covers the whole spec, the annotations, the references and the
	// generator. With it the timeout starts again, and objects under the reconcile
	// policy OnObjectOrComponentChange are written.
	component string
	// revision covers what a revision is counted by: the generator, its parameters, the
	// patches and the references. An annotation, or a field of the spec that the
	// generator does not get, is no part of it.
	revision string
	// generator identifies the generator as histories do.
	generator string
	// from is "=" and the digest of the generator in the others, which may be an earlier one: see samerevision.go.
	from string
}

func (h *handler) digestsOf(ctx context.Context, obj Component) (digests, error) {
	return h.digestsFrom(ctx, obj, h.renderer.Generator)
}

// digestsFrom is digestsOf for a generator.
func (h *handler) digestsFrom(ctx context.Context, obj Component, generator manifests.Generator) (digests, error) {
	now, err := h.digestsWith(ctx, obj, renders.Digest(generator))
	if err != nil {
		return digests{}, err
	}
	earlier, of, err := h.withEarlierGenerator(ctx, obj, now)
	if of == nil || of.Generator != now.generator { // it was not found before that both render the same
		return now, err
	}
	return earlier, err
}

// digestsWith is digestsOf for the digest of a generator.
func (h *handler) digestsWith(ctx context.Context, obj Component, generator string) (digests, error) {
	key, err := h.digestKey.Get(ctx)
	if err != nil {
		return digests{}, err
	}
	found, _ := h.author.finder.Find(obj.GetSpec())
	return digestsOf(obj, h.settings.name, found, generator, digest.Hasher{Key: key})
}

// sourceOf returns what the component is rendered from; nil if its generator does not
// report it. The source of one that is pinned is that of the earlier revision.
func (h *handler) sourceOf(obj Component, p pin) *v1alpha1.Source {
	if p.isSet() {
		for _, revision := range []int64{p.to, obj.GetStatus().Revision} {
			if entry := obj.GetStatus().revisionInHistory(revision); entry != nil && entry.Source != nil {
				return entry.Source.DeepCopy()
			}
		}
		return nil
	}
	return generatorSource(h.renderer.Generator)
}

// generatorSource returns what a generator renders from; nil if it does not report it.
func generatorSource(generator manifests.Generator) *v1alpha1.Source {
	if source := renders.Source(generator); source != (v1alpha1.Source{}) {
		return &source
	}
	return nil
}

// keepRevision keeps the revision of a component if another key made its digests, of an
// operator that is gone or that lost its key: they differ although nothing
// has changed. A generation that no revision was counted for may be another one all the same.
func (h *handler) keepRevision(ctx context.Context, obj Component, now digests) error {
	me, err := h.operator(ctx)
	if err != nil {
		return err
	}
	status := obj.GetStatus()
	recorded, sealedBy := status.processing(), status.Inventory.Operator
	counted := recorded.generation == strconv.FormatInt(obj.GetGeneration(), 10)
	switch current := status.currentRevision(); {
	case sealedBy == nil || sealedBy.Key == me.Key || !counted:
	case current != nil && current.RollbackTo == 0 && current.Generator != "" && current.Generator != now.generator: // another chart, or another version of it, is a change
	case current != nil && current.RollbackTo != 0: // its digest has no key
		if status.Rollback != nil {
			status.Rollback.Digest = now.revision
		}
	default:
		recorded.revision = now.revision
		status.setProcessing(recorded)
	}
	return nil
}

func digestsOf(c Component, name string, found []references.Found, generator string, hasher digest.Hasher) (digests, error) {
	annotations := maps.Clone(c.GetAnnotations())
	for _, request := range []string{name + "/" + vocabulary.AnnotationReconcileAt, name + "/" + vocabulary.AnnotationPreview, name + "/" + vocabulary.AnnotationRollout, fluxRequestedAt} {
		delete(annotations, request)
	}
	if len(annotations) == 0 {
		annotations = nil // no annotations and none but requests are the same
	}
	maps.DeleteFunc(annotations, func(key, _ string) bool { return slices.Contains(noisyAnnotations, key) })
	annotationsJSON, err := json.Marshal(annotations)
	if err != nil {
		return digests{}, fmt.Errorf("digest of the annotations: %w", err)
	}
	parametersJSON, err := parametersOf(c)
	if err != nil {
		return digests{}, err
	}
	patches, err := patchesJSON(c)
	if err != nil {
		return digests{}, err
	}
	whole := []string{strconv.FormatInt(c.GetGeneration(), 10), string(annotationsJSON), string(parametersJSON)}
	rendered := []string{string(parametersJSON), string(patches)}
	for _, reference := range found {
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
	return digests{component: hasher.Combine(whole...), revision: hasher.Combine(rendered...), generator: generatorID(generator), from: "=" + generator}, nil
}

// parametersOf returns what the generator gets, as JSON. Maps are marshalled in the order
// of their keys, so equal content is equal text.
func parametersOf(c Component) ([]byte, error) {
	var parameters map[string]any
	if spec := c.GetSpec(); !isNil(spec) {
		parameters = spec.ToUnstructured()
	}
	text, err := json.Marshal(parameters)
	if err != nil {
		return nil, fmt.Errorf("digest of the spec: %w", err)
	}
	return text, nil
}

// patchesJSON returns the patches of the component: they change the rendered objects, hooks
// included. It is empty if there are none.
func patchesJSON(c Component) ([]byte, error) {
	patches, images := patchesOf(c)
	if len(patches) == 0 && len(images) == 0 {
		return nil, nil
	}
	text, err := json.Marshal([]any{patches, images})
	if err != nil {
		return nil, fmt.Errorf("digest of the patches: %w", err)
	}
	return text, nil
}

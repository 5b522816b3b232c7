// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"strconv"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
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
	own, flux := h.self.Value(obj, vocabulary.AnnotationReconcileAt), obj.GetAnnotations()[fluxRequestedAt]
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339, text) // zero if it is none
		return t
	}
	if own == "" || at(flux).After(at(own)) {
		own = flux
	}
	return sentence.Shorten(own, maxReconcileAt)
}

func (h *handler) digestsOf(ctx context.Context, obj Component) (revision.Digests, error) {
	return h.digestsFrom(ctx, obj, h.renderer.Generator)
}

// digestsFrom is digestsOf for a generator.
func (h *handler) digestsFrom(ctx context.Context, obj Component, generator manifests.Generator) (revision.Digests, error) {
	now, err := h.digestsWith(ctx, obj, renders.Digest(generator))
	if err != nil {
		return revision.Digests{}, err
	}
	earlier, of, err := h.withEarlierGenerator(ctx, obj, now)
	if of == nil || of.Generator != now.Generator { // it was not found before that both render the same
		return now, err
	}
	return earlier, err
}

// digestsWith is digestsOf for the digest of a generator.
func (h *handler) digestsWith(ctx context.Context, obj Component, generator string) (revision.Digests, error) {
	key, err := h.digestKey.Get(ctx)
	if err != nil {
		return revision.Digests{}, err
	}
	found, _ := h.author.finder.Find(obj.GetSpec())
	patches, images := patchesOf(obj)
	return revision.DigestsOf(obj, h.self.Name, found, patches, images, generator, digest.Hasher{Key: key})
}

// sourceOf returns what the component is rendered from; nil if its generator does not
// report it. The source of one that is pinned is that of the earlier revision.
func (h *handler) sourceOf(obj Component, p revision.Pin) *v1alpha1.Source {
	if p.IsSet() {
		for _, number := range []int64{p.To, obj.GetStatus().Revision} {
			if entry := revision.Of(obj).Entry(number); entry != nil && entry.Source != nil {
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
func (h *handler) keepRevision(ctx context.Context, obj Component, now revision.Digests) error {
	me, err := h.operator(ctx)
	if err != nil {
		return err
	}
	status := revision.Of(obj)
	recorded, sealedBy := status.Processing(), status.Inventory.Operator
	counted := recorded.Generation == strconv.FormatInt(obj.GetGeneration(), 10)
	switch current := status.Current(); {
	case sealedBy == nil || sealedBy.Key == me.Key || !counted:
	case current != nil && current.RollbackTo == 0 && current.Generator != "" && current.Generator != now.Generator: // another chart, or another version of it, is a change
	case current != nil && current.RollbackTo != 0: // its digest has no key
		if status.Rollback != nil {
			status.Rollback.Digest = now.Revision
		}
	default:
		recorded.Revision = now.Revision
		status.SetProcessing(recorded)
	}
	return nil
}

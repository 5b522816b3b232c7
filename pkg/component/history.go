// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/redact"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// DiffRevisions returns what differs between the manifests of two revisions of a component that are in
// its history: the objects that only the second one has (reconciler.ChangeCreate), those that
// only the first one has (ChangeDelete), and those with other fields (ChangeUpdate). No value of a
// Secret is in it.
//
// It fails if the manifests of one of the revisions are not kept, and before the setup.
func (r *Reconciler[T]) DiffRevisions(ctx context.Context, key client.ObjectKey, from, to int64) ([]reconciler.PlannedChange, error) {
	running := r.running.Load()
	if running == nil {
		return nil, fmt.Errorf("reconciler %s: DiffRevisions was called before SetupWithManager", r.settings.name)
	}
	h, obj := running.handler, newComponent[T]()
	ctx = redact.With(ctx, redact.New())
	if err := h.local.Get(ctx, key, obj); err != nil {
		return nil, fmt.Errorf("read %s %s: %w", h.kind.Kind, key, err)
	}
	var sets [2]rendering.Rendering
	for i, revision := range []int64{from, to} {
		entry := obj.GetStatus().revisionInHistory(revision)
		if entry == nil {
			return nil, h.about(obj, fmt.Errorf("revision %d is not in its history", revision))
		}
		request := h.renderRequest(obj, resolvedConfig{}, "", true)
		request.Revision.Number, request.Stored = revision, entry.Digest
		stored, err := h.renderer.Stored(ctx, request)
		if err != nil {
			return nil, h.about(obj, err)
		}
		sets[i] = stored
	}
	return reconciler.Diff(ctx, sets[0].Objects, sets[1].Objects), nil
}

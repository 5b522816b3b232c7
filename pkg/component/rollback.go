// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// A component is pinned to an earlier revision by the annotation rollback-to, or because a later
// revision failed and the component is rolled back then. The manifests of the earlier revision
// are applied as a revision of their own, with a number of its own, so that their hooks run once.

// pinOf returns the revision that the component is pinned to. The digests are those of what the
// spec leads to: a component is rolled back until they change. It is an error if a rollback cannot start:
// no revision is counted for it then.
func (h *handler) pinOf(ctx context.Context, obj Component, spec revision.Digests) (revision.Pin, error) {
	status, annotation := obj.GetStatus(), h.self.Annotation(vocabulary.AnnotationRollbackTo)
	if value := obj.GetAnnotations()[annotation]; value != "" {
		to, err := strconv.ParseInt(value, 10, 64)
		if err != nil || to < 1 {
			return revision.Pin{}, &verdict.InvalidError{Err: h.self.About(obj, fmt.Errorf(`annotation %s: %q must be the number of an earlier revision, such as "3"`, annotation, sentence.Shorten(value, 64)))}
		}
		asked := revision.Pin{To: to}
		if err := h.checkKept(ctx, obj, asked); err != nil {
			return revision.Pin{}, err
		}
		status.Rollback = nil
		return asked, nil
	}
	if r := status.Rollback; r != nil && (r.Digest != spec.Revision || r.To < 1 || r.To >= r.From || h.settings.historyLimit == 0) {
		status.Rollback = nil
	}
	if status.Rollback == nil {
		return revision.Pin{}, nil
	}
	failed := revision.Pin{To: status.Rollback.To, Failed: status.Rollback.From}
	return failed, h.checkKept(ctx, obj, failed)
}

// checkKept returns an error if the rollback is to start and the manifests of the revision are not kept.
func (h *handler) checkKept(ctx context.Context, obj Component, p revision.Pin) error {
	status := revision.Of(obj)
	if current := status.Current(); current != nil && current.RollbackTo == p.To {
		return nil
	}
	if h.settings.historyLimit == 0 {
		return h.notKept(obj, p, nil)
	}
	missing := &rendering.MissingRevisionError{Revision: p.To}
	for _, entry := range status.History {
		switch {
		case entry.Digest == "":
		case entry.Revision == p.To:
			request := h.renderRequest(obj, resolvedConfig{}, "", true)
			request.Revision.Number, request.Stored = p.To, entry.Digest
			_, err := h.renderer.Stored(ctx, request)
			return h.notKept(obj, p, err)
		default:
			missing.Kept = append(missing.Kept, entry.Revision)
		}
	}
	return h.notKept(obj, p, missing)
}

// notKept returns the error of a component whose rollback cannot be done for this reason. If the operator had started it, the
// failed revision is applied again, and is not rolled back.
func (h *handler) notKept(obj Component, p revision.Pin, err error) error {
	_, missing := errors.AsType[*rendering.MissingRevisionError](err)
	switch {
	case h.settings.historyLimit == 0: // the option may have changed
		return &verdict.InvalidError{Err: h.self.About(obj, fmt.Errorf("it cannot be rolled back to revision %d, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", p.To))}
	case err == nil:
		return nil
	case missing && p.Failed != 0:
		obj.GetStatus().Rollback = nil
		if entry := revision.Of(obj).Entry(p.To); entry != nil {
			entry.Digest = ""
		}
		return h.self.About(obj, fmt.Errorf("it cannot be rolled back after the failure of revision %d: %w", p.Failed, err))
	case missing:
		return &verdict.InvalidError{Err: h.self.About(obj, err)}
	}
	return h.self.About(obj, err)
}

// restore returns the manifests of the revision that the component is pinned to.
func (h *handler) restore(ctx context.Context, renderer *rendering.Renderer, obj Component, request rendering.Request, p revision.Pin, last *rendering.Last) (rendering.Rendering, error) {
	from := rendering.Pin{Revision: p.To}
	if entry := revision.Of(obj).Entry(p.To); entry != nil {
		from.Digest = entry.Digest
	}
	if h.settings.historyLimit == 0 {
		return rendering.Rendering{}, h.notKept(obj, p, nil)
	}
	restored, err := renderer.Restore(ctx, request, from, last)
	return restored, h.notKept(obj, p, err)
}

// rollBackFailed records that the revision failed and, if the component is to be rolled back, that it
// is. It reports whether it is. The status is written before the earlier revision is applied. A
// revision that was ready before, a rollback, and one that the next version is to replace are not rolled back.
func (h *handler) rollBackFailed(obj Component, message string) bool {
	status := revision.Of(obj)
	status.NoteFailed()
	current, last := status.Current(), status.LastReady()
	if current == nil || h.remembered(obj).turn != "" || current.ReadyAt != nil || current.RollbackTo != 0 || last == nil || last.Digest == "" || !h.rollsBack(obj) {
		return false
	}
	status.Rollback = &v1alpha1.Rollback{
		From: current.Revision, To: last.Revision, Digest: status.Processing().Revision, Message: sentence.Shorten(sentence.OneLine(message), verdict.MaxSentence),
	}
	return true
}

// rollsBack reports whether the component is rolled back when a revision fails.
func (h *handler) rollsBack(obj Component) bool {
	if own, ok := configurationOf[RollbackConfiguration](obj); ok {
		if value := own.GetRollbackOnFailure(); value != nil {
			return *value
		}
	}
	return h.settings.rollbackOnFailure
}

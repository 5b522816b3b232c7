// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// A component is pinned to an earlier revision by the annotation rollback-to, or because a later
// revision failed and the component is rolled back then. The manifests of the earlier revision
// are applied as a revision of their own, with a number of its own, so that their hooks run once.

// pin is the revision that a component is pinned to; the zero value is none.
type pin struct {
	to int64
	// failed is the revision that failed; 0 if the annotation asks for the rollback.
	failed int64
}

func (p pin) isSet() bool { return p.to != 0 }

// pinOf returns the revision that the component is pinned to. The digests are those of what the
// spec leads to: a component is rolled back until they change. It is an error if a rollback cannot start:
// no revision is counted for it then.
func (h *handler) pinOf(ctx context.Context, obj Component, spec digests) (pin, error) {
	status, annotation := obj.GetStatus(), h.settings.name+"/"+vocabulary.AnnotationRollbackTo
	if value := obj.GetAnnotations()[annotation]; value != "" {
		to, err := strconv.ParseInt(value, 10, 64)
		if err != nil || to < 1 {
			return pin{}, &verdict.InvalidError{Err: h.about(obj, fmt.Errorf(`annotation %s: %q must be the number of an earlier revision, such as "3"`, annotation, sentence.Shorten(value, 64)))}
		}
		asked := pin{to: to}
		if err := h.checkKept(ctx, obj, asked); err != nil {
			return pin{}, err
		}
		status.Rollback = nil
		return asked, nil
	}
	if r := status.Rollback; r != nil && (r.Digest != spec.revision || r.To < 1 || r.To >= r.From || h.settings.historyLimit == 0) {
		status.Rollback = nil
	}
	if status.Rollback == nil {
		return pin{}, nil
	}
	failed := pin{to: status.Rollback.To, failed: status.Rollback.From}
	return failed, h.checkKept(ctx, obj, failed)
}

// checkKept returns an error if the rollback is to start and the manifests of the revision are not kept.
func (h *handler) checkKept(ctx context.Context, obj Component, p pin) error {
	status := obj.GetStatus()
	if current := status.currentRevision(); current != nil && current.RollbackTo == p.to {
		return nil
	}
	if h.settings.historyLimit == 0 {
		return h.notKept(obj, p, nil)
	}
	missing := &rendering.MissingRevisionError{Revision: p.to}
	for _, entry := range status.History {
		switch {
		case entry.Digest == "":
		case entry.Revision == p.to:
			request := h.renderRequest(obj, resolvedConfig{}, "", true)
			request.Revision.Number, request.Stored = p.to, entry.Digest
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
func (h *handler) notKept(obj Component, p pin, err error) error {
	_, missing := errors.AsType[*rendering.MissingRevisionError](err)
	switch {
	case h.settings.historyLimit == 0: // the option may have changed
		return &verdict.InvalidError{Err: h.about(obj, fmt.Errorf("it cannot be rolled back to revision %d, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", p.to))}
	case err == nil:
		return nil
	case missing && p.failed != 0:
		obj.GetStatus().Rollback = nil
		if entry := obj.GetStatus().revisionInHistory(p.to); entry != nil {
			entry.Digest = ""
		}
		return h.about(obj, fmt.Errorf("it cannot be rolled back after the failure of revision %d: %w", p.failed, err))
	case missing:
		return &verdict.InvalidError{Err: h.about(obj, err)}
	}
	return h.about(obj, err)
}

// digests returns the digests of a component that is pinned: its revision does not follow from its
// spec. Going back by itself starts the timeout anew; the annotation does so by being there.
func (p pin) digests(spec digests) digests {
	if !p.isSet() {
		return spec
	}
	pinned := spec
	pinned.revision = digest.Combine("rollback", strconv.FormatInt(p.to, 10), strconv.FormatInt(p.failed, 10))
	if p.failed != 0 {
		pinned.component = digest.Combine(spec.component, pinned.revision)
	}
	return pinned
}

// restore returns the manifests of the revision that the component is pinned to.
func (h *handler) restore(ctx context.Context, renderer *rendering.Renderer, obj Component, request rendering.Request, p pin, last *rendering.Last) (rendering.Rendering, error) {
	from := rendering.Pin{Revision: p.to}
	if entry := obj.GetStatus().revisionInHistory(p.to); entry != nil {
		from.Digest = entry.Digest
	}
	if h.settings.historyLimit == 0 {
		return rendering.Rendering{}, h.notKept(obj, p, nil)
	}
	restored, err := renderer.Restore(ctx, request, from, last)
	return restored, h.notKept(obj, p, err)
}

// irreplaceable are the types of objects that a rollback never deletes, because data goes with
// them.
var irreplaceable = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// retained returns the recorded objects that stay as they are although the earlier revision does not
// have them: what is irreplaceable, and what ran for other revisions and may say why it failed.
func retained(items []v1alpha1.InventoryItem, hooks []rendering.Hook) []report.Key {
	var keys []report.Key
	for _, item := range items {
		if slices.Contains(irreplaceable, schema.GroupKind{Group: item.Group, Kind: item.Kind}) {
			keys = append(keys, report.Key{Group: item.Group, Kind: item.Kind, Namespace: item.Namespace, Name: item.Name})
		}
	}
	for _, hook := range hooks {
		keys = append(keys, report.Key{Group: hook.Group, Kind: hook.Kind, Namespace: hook.Namespace, Name: hook.Name})
	}
	return keys
}

// describe says what a component is pinned to, and what stays of later revisions.
func (p pin) describe(reconcilerName string, pinned rendering.Pinned, kept []report.Key) string {
	if !p.isSet() {
		return ""
	}
	text := fmt.Sprintf("pinned to revision %d by annotation %s/%s", p.to, reconcilerName, vocabulary.AnnotationRollbackTo)
	if p.failed != 0 {
		text = fmt.Sprintf("rolled back to revision %d", p.to)
	}
	stays := slices.Clone(pinned.NewerDefinitions)
	for _, key := range kept {
		if slices.Contains(irreplaceable, key.GroupKind()) {
			stays = append(stays, key.String())
		}
	}
	if len(stays) > 0 {
		text += "; kept of later revisions: " + verdict.FirstSentences(stays, 0, func(name string) string { return name })
	}
	return text
}

// rollBackFailed records that the revision failed and, if the component is to be rolled back, that it
// is. It reports whether it is. The status is written before the earlier revision is applied. A
// revision that was ready before, a rollback, and one that the next version is to replace are not rolled back.
func (h *handler) rollBackFailed(obj Component, message string) bool {
	status := obj.GetStatus()
	status.noteFailed()
	current, last := status.currentRevision(), status.lastReady()
	if current == nil || h.remembered(obj).turn != "" || current.ReadyAt != nil || current.RollbackTo != 0 || last == nil || last.Digest == "" || !h.rollsBack(obj) {
		return false
	}
	status.Rollback = &v1alpha1.Rollback{
		From: current.Revision, To: last.Revision, Digest: status.processing().revision, Message: sentence.Shorten(sentence.OneLine(message), verdict.MaxSentence),
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

// changedBy returns the field manager that changed the spec of the component last, or anything of it if the
// spec has none; that of a rollback has set its annotation. It is empty if it is not known.
func (h *handler) changedBy(obj Component, pinned pin) string {
	var last, ofSpec metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "" || entry.Manager == h.settings.fieldOwner || entry.Time == nil {
			continue
		}
		if last.Time == nil || last.Time.Before(entry.Time) {
			last = entry
		}
		ownsSpec := entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:spec"`))
		if ownsSpec && (ofSpec.Time == nil || ofSpec.Time.Before(entry.Time)) {
			ofSpec = entry
		}
	}
	if ofSpec.Time == nil || pinned.isSet() {
		ofSpec = last
	}
	return sentence.Shorten(ofSpec.Manager, 64)
}

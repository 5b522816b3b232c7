// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

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
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// Pin is the earlier revision that a component is pinned to, by the annotation rollback-to or because a later revision failed; the zero
// value is none. The manifests of the earlier revision are applied as a revision with a number of its own, so that their hooks run once.
type Pin struct {
	// To is the earlier revision.
	To int64
	// Failed is the revision that failed; 0 if the annotation asks for the rollback.
	Failed int64
}

// IsSet reports whether the component is pinned.
func (p Pin) IsSet() bool { return p.To != 0 }

// Digests returns the digests of a component that is pinned: its revision does not follow from its
// spec. Going back by itself starts the timeout anew; the annotation does so by being there.
func (p Pin) Digests(spec Digests) Digests {
	if !p.IsSet() {
		return spec
	}
	pinned := spec
	pinned.Revision = digest.Combine("rollback", strconv.FormatInt(p.To, 10), strconv.FormatInt(p.Failed, 10))
	if p.Failed != 0 {
		pinned.Component = digest.Combine(spec.Component, pinned.Revision)
	}
	return pinned
}

// irreplaceable are the types of objects that a rollback never deletes, because data goes with them.
var irreplaceable = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// Retained returns the recorded objects that stay as they are although the earlier revision does not
// have them: what is irreplaceable, and what ran for other revisions and may say why it failed.
func Retained(items []v1alpha1.InventoryItem, hooks []report.Key) []report.Key {
	keys := slices.Clone(hooks)
	for _, item := range items {
		key := report.Key{Group: item.Group, Kind: item.Kind, Namespace: item.Namespace, Name: item.Name}
		if slices.Contains(irreplaceable, key.GroupKind()) {
			keys = append(keys, key)
		}
	}
	return keys
}

// Describe says what a component is pinned to, and what stays of later revisions.
func (p Pin) Describe(reconcilerName string, pinned rendering.Pinned, kept []report.Key) string {
	if !p.IsSet() {
		return ""
	}
	text := fmt.Sprintf("pinned to revision %d by annotation %s/%s", p.To, reconcilerName, vocabulary.AnnotationRollbackTo)
	if p.Failed != 0 {
		text = fmt.Sprintf("rolled back to revision %d", p.To)
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

// ChangedBy returns the field manager that changed the spec of the component last, or anything of it if the
// spec has none; that of a rollback has set its annotation. It is empty if it is not known.
func ChangedBy(obj metav1.Object, fieldOwner string, pinned Pin) string {
	var last, ofSpec metav1.ManagedFieldsEntry
	for _, entry := range obj.GetManagedFields() {
		if entry.Subresource != "" || entry.Manager == fieldOwner || entry.Time == nil {
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
	if ofSpec.Time == nil || pinned.IsSet() {
		ofSpec = last
	}
	return sentence.Shorten(ofSpec.Manager, 64)
}

// pinOf returns the revision that the component is pinned to. The digests are those of what the spec leads to: a component is
// rolled back until they change. It is an error if a rollback cannot start: no revision is counted for it then.
func (s *Source) pinOf(ctx context.Context, obj identity.Component, spec Digests) (Pin, error) {
	status, annotation := obj.GetStatus(), s.Self.Annotation(vocabulary.AnnotationRollbackTo)
	if value := obj.GetAnnotations()[annotation]; value != "" {
		to, err := strconv.ParseInt(value, 10, 64)
		if err != nil || to < 1 {
			return Pin{}, &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf(`annotation %s: %q must be the number of an earlier revision, such as "3"`, annotation, sentence.Shorten(value, 64)))}
		}
		asked := Pin{To: to}
		if err := s.checkKept(ctx, obj, asked); err != nil {
			return Pin{}, err
		}
		status.Rollback = nil
		return asked, nil
	}
	if r := status.Rollback; r != nil && (r.Digest != spec.Revision || r.To < 1 || r.To >= r.From || s.HistoryLimit == 0) {
		status.Rollback = nil
	}
	if status.Rollback == nil {
		return Pin{}, nil
	}
	failed := Pin{To: status.Rollback.To, Failed: status.Rollback.From}
	return failed, s.checkKept(ctx, obj, failed)
}

// checkKept returns an error if the rollback is to start and the manifests of the revision are not kept.
func (s *Source) checkKept(ctx context.Context, obj identity.Component, p Pin) error {
	status := Of(obj)
	if current := status.Current(); current != nil && current.RollbackTo == p.To {
		return nil
	}
	if s.HistoryLimit == 0 {
		return s.notKept(obj, p, nil)
	}
	missing := &rendering.MissingRevisionError{Revision: p.To}
	for _, entry := range status.History {
		switch {
		case entry.Digest == "":
		case entry.Revision == p.To:
			_, err := s.StoredRevision(ctx, obj, p.To, entry.Digest)
			return s.notKept(obj, p, err)
		default:
			missing.Kept = append(missing.Kept, entry.Revision)
		}
	}
	return s.notKept(obj, p, missing)
}

// notKept returns the error of a rollback that cannot be done. If the operator had started it, the failed revision is applied again.
func (s *Source) notKept(obj identity.Component, p Pin, err error) error {
	_, missing := errors.AsType[*rendering.MissingRevisionError](err)
	switch {
	case s.HistoryLimit == 0: // the option may have changed
		return &verdict.InvalidError{Err: s.Self.About(obj, fmt.Errorf("it cannot be rolled back to revision %d, because the operator keeps no manifests (option RevisionHistoryLimit is 0)", p.To))}
	case err == nil:
		return nil
	case missing && p.Failed != 0:
		obj.GetStatus().Rollback = nil
		if entry := Of(obj).Entry(p.To); entry != nil {
			entry.Digest = ""
		}
		return s.Self.About(obj, fmt.Errorf("it cannot be rolled back after the failure of revision %d: %w", p.Failed, err))
	case missing:
		return &verdict.InvalidError{Err: s.Self.About(obj, err)}
	}
	return s.Self.About(obj, err)
}

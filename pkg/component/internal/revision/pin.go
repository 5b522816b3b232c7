// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package revision

import (
	"bytes"
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

// Pin is the revision that a component is pinned to; the zero value is none.
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

// irreplaceable are the types of objects that a rollback never deletes, because data goes with
// them.
var irreplaceable = []schema.GroupKind{
	{Kind: "PersistentVolumeClaim"}, {Kind: "PersistentVolume"}, {Kind: "Namespace"}, {Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"},
}

// Retained returns the recorded objects that stay as they are although the earlier revision does not
// have them: what is irreplaceable, and what ran for other revisions and may say why it failed.
func Retained(items []v1alpha1.InventoryItem, hooks []report.Key) []report.Key {
	var keys []report.Key
	for _, item := range items {
		if slices.Contains(irreplaceable, schema.GroupKind{Group: item.Group, Kind: item.Kind}) {
			keys = append(keys, report.Key{Group: item.Group, Kind: item.Kind, Namespace: item.Namespace, Name: item.Name})
		}
	}
	return append(keys, hooks...)
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/tools/record"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

// requested is an object with the field in its status, in a struct that is inlined.
type requested struct {
	corev1.ConfigMap
	Status struct {
		Answers `json:",inline"`
		Other   int `json:"other"`
	} `json:"status"`
}

// Answers is exported, as embedded fields must be to be serialised.
type Answers struct {
	LastHandledReconcileAt string `json:"lastHandledReconcileAt,omitempty"`
}

func TestRecordReconcileReq(t *testing.T) {
	for value, annotations := range map[string]map[string]string{
		"2026-01-01": {vocabulary.AnnotationReconcileRequestedAt: "2026-01-01"},
		"":           {vocabulary.AnnotationReconcileRequestedAt: ""},
		"before":     {"other": "x"},
	} {
		obj := &requested{}
		obj.Annotations, obj.Status.LastHandledReconcileAt = annotations, "before"
		summarize.RecordReconcileReq(t.Context(), nil, obj, result.Empty, errAny)
		if got := obj.Status.LastHandledReconcileAt; got != value {
			t.Errorf("%v: %q", annotations, got)
		}
		u := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{"lastHandledReconcileAt": "before"}}}
		u.SetAnnotations(annotations)
		summarize.RecordReconcileReq(t.Context(), nil, u, result.Empty, errAny)
		if got, _, _ := unstructured.NestedString(u.Object, "status", "lastHandledReconcileAt"); got != value {
			t.Errorf("%v: unstructured %q", annotations, got)
		}
	}
	never := &unstructured.Unstructured{Object: map[string]any{}}
	never.SetAnnotations(map[string]string{vocabulary.AnnotationReconcileRequestedAt: "first"})
	summarize.RecordReconcileReq(t.Context(), nil, never, result.Empty, nil)
	if got, _, _ := unstructured.NestedString(never.Object, "status", "lastHandledReconcileAt"); got != "first" {
		t.Errorf("the first request of an unstructured object is answered with %q", got)
	}
	pointers := &struct {
		corev1.ConfigMap
		Status *struct {
			LastHandledReconcileAt *string `json:"lastHandledReconcileAt"`
		} `json:"status"`
	}{}
	pointers.Annotations = never.GetAnnotations()
	summarize.RecordReconcileReq(t.Context(), nil, pointers, result.Empty, nil)
	if pointers.Status == nil || *pointers.Status.LastHandledReconcileAt != "first" {
		t.Errorf("the status behind a pointer is %+v", pointers.Status)
	}
	// Objects without the field are left alone, also behind an adapter.
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{vocabulary.AnnotationReconcileRequestedAt: "x"}}}
	summarize.RecordReconcileReq(t.Context(), nil, conditions.For(w, &w.Status.Conditions), result.Empty, nil)
	summarize.RecordReconcileReq(t.Context(), nil, &corev1.Secret{ObjectMeta: w.ObjectMeta}, result.Empty, nil)
}

func TestTheOlderRecorder(t *testing.T) {
	older := record.NewFakeRecorder(1)
	summarize.RecordContextualError(t.Context(), summarize.FromRecorder(older), &widget.Widget{}, result.Empty, result.NewStalling(errAny, "Invalid"))
	check.SameNamed(t, "event", "Warning Invalid connection refused", <-older.Events)
	if summarize.FromRecorder(nil) != nil {
		t.Error("no recorder is one")
	}
}

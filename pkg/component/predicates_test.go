// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

func TestWorthReconciling(t *testing.T) {
	const ours = "test.corbel.run"
	deleted := func(w *widget) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	finalizers := func(finalizers ...string) func(*widget) {
		return func(w *widget) { w.Finalizers = finalizers }
	}
	tests := []struct {
		name          string
		before, after []func(*widget)
		want          bool
	}{
		{name: "nothing changed"},
		{name: "the status changed", after: []func(*widget){func(w *widget) { w.Status.State = StateReady; w.ResourceVersion = "2" }}},
		{name: "the generation changed", after: []func(*widget){func(w *widget) { w.Generation++ }}, want: true},
		{name: "another object of the same name", after: []func(*widget){func(w *widget) { w.UID = "other" }}, want: true},
		{name: "an annotation changed", after: []func(*widget){func(w *widget) { w.Annotations = map[string]string{"a": "b"} }}, want: true},
		{name: "a label changed", after: []func(*widget){func(w *widget) { w.Labels = map[string]string{"a": "b"} }}, want: true},
		{name: "deletion was asked for", after: []func(*widget){deleted}, want: true},
		{name: "our finalizer was added", after: []func(*widget){finalizers(ours)}},
		{name: "our finalizer was taken away", before: []func(*widget){finalizers(ours)}, want: true},
		{name: "a finalizer was added while nobody deletes", after: []func(*widget){finalizers("x")}},
		{name: "a finalizer of somebody else goes in deletion",
			before: []func(*widget){deleted, finalizers(ours, "x")}, after: []func(*widget){deleted, finalizers(ours)}, want: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, after := newWidget(), newWidget()
			for _, change := range test.before {
				change(before)
			}
			for _, change := range test.after {
				change(after)
			}
			if got := worthReconciling(ours).Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if !worthReconciling(ours).Create(event.CreateEvent{Object: newWidget()}) || !worthReconciling(ours).Delete(event.DeleteEvent{Object: newWidget()}) {
		t.Error("a creation or deletion is not worth it")
	}
	if worthReconciling(ours).Update(event.UpdateEvent{}) {
		t.Error("an update of nothing is worth it")
	}
}

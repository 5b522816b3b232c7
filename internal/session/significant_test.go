// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/test/widget"
)

func TestSignificant(t *testing.T) {
	const ours = "test.corbel.run"
	deleted := func(w *widget.Widget) { w.DeletionTimestamp = &metav1.Time{Time: time.Unix(1, 0)} }
	finalizers := func(finalizers ...string) func(*widget.Widget) {
		return func(w *widget.Widget) { w.Finalizers = finalizers }
	}
	tests := []struct {
		name          string
		before, after []func(*widget.Widget)
		want          bool
	}{
		{name: "nothing changed"},
		{name: "the status changed", after: []func(*widget.Widget){func(w *widget.Widget) { w.Status.Phase = "Ready"; w.ResourceVersion = "2" }}},
		{name: "the generation changed", after: []func(*widget.Widget){func(w *widget.Widget) { w.Generation++ }}, want: true},
		{name: "another object of the same name", after: []func(*widget.Widget){func(w *widget.Widget) { w.UID = "other" }}, want: true},
		{name: "an annotation changed", after: []func(*widget.Widget){func(w *widget.Widget) { w.Annotations = map[string]string{"a": "b"} }}, want: true},
		{name: "an annotation changed that is to be ignored", before: []func(*widget.Widget){func(w *widget.Widget) { w.Annotations = map[string]string{"ignored": "a"} }},
			after: []func(*widget.Widget){func(w *widget.Widget) { w.Annotations = map[string]string{"ignored": "b"} }}},
		{name: "a label changed", after: []func(*widget.Widget){func(w *widget.Widget) { w.Labels = map[string]string{"a": "b"} }}, want: true},
		{name: "deletion was asked for", after: []func(*widget.Widget){deleted}, want: true},
		{name: "our finalizer was added", after: []func(*widget.Widget){finalizers(ours)}},
		{name: "our finalizer was taken away", before: []func(*widget.Widget){finalizers(ours)}, want: true},
		{name: "another operator gave up its claim", before: []func(*widget.Widget){finalizers("x")}, want: true},
		{name: "a finalizer of another client goes while ours is there", before: []func(*widget.Widget){finalizers(ours, "x")}, after: []func(*widget.Widget){finalizers(ours)}},
		{name: "our claim takes the place of another one", before: []func(*widget.Widget){finalizers("x")}, after: []func(*widget.Widget){finalizers(ours)}},
		{name: "a finalizer was added to an object that is not being deleted", after: []func(*widget.Widget){finalizers("x")}},
		{name: "a finalizer of a former operator comes back while ours is there", before: []func(*widget.Widget){finalizers(ours)}, after: []func(*widget.Widget){finalizers(ours, "x")}, want: true},
		{name: "a finalizer of another client goes in deletion",
			before: []func(*widget.Widget){deleted, finalizers(ours, "x")}, after: []func(*widget.Widget){deleted, finalizers(ours)}, want: true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before, after := &widget.Widget{}, &widget.Widget{}
			for _, change := range test.before {
				change(before)
			}
			for _, change := range test.after {
				change(after)
			}
			if got := session.Significant(ours, "ignored").Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}); got != test.want {
				t.Errorf("got %v", got)
			}
		})
	}
	if !session.Significant(ours).Create(event.CreateEvent{Object: &widget.Widget{}}) || !session.Significant(ours).Delete(event.DeleteEvent{Object: &widget.Widget{}}) {
		t.Error("a creation or deletion is not worth it")
	}
}

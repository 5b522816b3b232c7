// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

func TestASuspensionSaysUntilWhenAndWhy(t *testing.T) {
	const suspend, reason = "test.corbel.run/suspend", "test.corbel.run/suspend-reason"
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	far, near := metav1.NewTime(h.now().Add(time.Hour)), h.now().Add(-time.Hour)
	text := far.UTC().Format(time.RFC3339)
	for _, test := range []struct {
		name        string
		annotations map[string]string
		spec        SuspensionSpec
		want        string // empty: it is not suspended
		ends        bool   // and so it is requeued
	}{
		{name: "not suspended"},
		{name: "by the annotation", annotations: map[string]string{suspend: "true"}, want: "suspended"},
		{name: "by the annotation, with a reason", annotations: map[string]string{suspend: "true", reason: "incident 7"}, want: "suspended: incident 7"},
		{name: "by the annotation, with a long reason", annotations: map[string]string{suspend: "true", reason: strings.Repeat("x", 200_000)},
			want: "suspended: " + strings.Repeat("x", 317) + "…"},
		{name: "by the annotation, with an end", annotations: map[string]string{suspend: text}, want: "suspended until " + text, ends: true},
		{name: "an annotation that has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339)}},
		{name: "an annotation that is false", annotations: map[string]string{suspend: "false"}},
		{name: "by the spec", spec: SuspensionSpec{Suspend: true, SuspendReason: "incident 8"}, want: "suspended: incident 8"},
		{name: "by the spec, with an end", spec: SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended until " + text, ends: true},
		{name: "a spec that has ended", spec: SuspensionSpec{Suspend: true, SuspendUntil: &metav1.Time{Time: near}}},
		{name: "both, and the annotation has ended", annotations: map[string]string{suspend: near.Format(time.RFC3339), reason: "old"},
			spec: SuspensionSpec{Suspend: true, SuspendReason: "incident 9"}, want: "suspended: incident 9"},
		{name: "both, and the annotation will end", annotations: map[string]string{suspend: text}, spec: SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "both, and the spec will end", annotations: map[string]string{suspend: "true"},
			spec: SuspensionSpec{Suspend: true, SuspendUntil: &far}, want: "suspended"},
		{name: "a mistake in the annotation, and the spec", annotations: map[string]string{suspend: "x"},
			spec: SuspensionSpec{Suspend: true}, want: "suspended"},
		{name: "an annotation with the zero time", annotations: map[string]string{suspend: "0001-01-01T00:00:00Z"}},
		{name: "terms of no suspension", spec: SuspensionSpec{SuspendUntil: &far, SuspendReason: "x"}},
	} {
		obj := withSpec(widgetSpec{SuspensionSpec: test.spec})
		obj.Annotations = test.annotations
		suspended := h.isSuspended(obj)
		if suspended != (test.want != "") {
			t.Errorf("%s: suspended %t", test.name, suspended)
		}
		if !suspended {
			continue
		}
		after := h.report(t.Context(), obj, session.Outcome{Phase: session.PhaseSkip}).Result.RequeueAfter
		if state, _, message := obj.GetStatus().GetState(); state != v1alpha1.StateSuspended || message != test.want {
			t.Errorf("%s: %s: %s", test.name, state, message)
		}
		if ends := after > 0; ends != test.ends || after > time.Hour {
			t.Errorf("%s: requeued after %s", test.name, after)
		}
	}

	obj := newWidget()
	obj.Annotations = map[string]string{suspend: "tomorrow"}
	reconcileOnce(t, h, obj)
	if _, got, message := obj.GetStatus().GetState(); h.isSuspended(obj) || got != vocabulary.ReasonSpecInvalid || len(engine.applied) > 0 ||
		!strings.Contains(message, `annotation `+suspend+`: "tomorrow" must be "true", "false" or a time`) {
		t.Errorf("%s: %s", got, message)
	}
}

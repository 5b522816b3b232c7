// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

// The timeout does not count for a container that has never ended.
func TestTheTimeoutDoesNotEndTheFirstStartOfAContainer(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	for settling, timedOut := range map[time.Duration]bool{0: true, 10 * time.Second: true, 2 * time.Minute: false} {
		obj := newWidget()
		obj.Status.ProcessingSince = &metav1.Time{Time: h.now().Add(-intervalsOf(obj).Timeout - time.Minute)}
		reportReconcile(t, h, obj, &verdict.UnfinishedError{Facts: verdict.Facts{Waiting: "Deployment shop/api", Settling: settling}})
		if _, reason, _ := obj.GetStatus().GetState(); (reason == vocabulary.ReasonTimeout) != timedOut {
			t.Errorf("settling %v: %s", settling, reason)
		}
	}
}

func TestAMendedStatusKeepsItsInventory(t *testing.T) {
	decode := func(content map[string]any) error {
		return runtime.DefaultUnstructuredConverter.FromUnstructured(content, &widget{})
	}
	record := map[string]any{"format": "three"}
	stored := &unstructured.Unstructured{Object: map[string]any{"status": map[string]any{
		"revision": "one", "inventory": record, "progress": "1/1",
		"conditions": []any{map[string]any{"type": "Done", "status": true}, "no condition"},
	}}}
	mistake := &undecodableError{object: stored, err: decode(stored.Object), decode: decode}
	if mistake.mendStatus() {
		t.Error("a record that cannot be read counts as mended")
	}
	want := map[string]any{"inventory": record, "progress": "1/1", "conditions": []any{map[string]any{"type": "Done"}}}
	if diff := cmp.Diff(want, stored.Object["status"]); diff != "" {
		t.Errorf("the status (-want +got):\n%s", diff)
	}
	record["format"] = int64(3)
	if !mistake.mendStatus() {
		t.Error("a status that decodes is not mended")
	}
	stored.Object["status"] = "fine"
	if _, left := stored.Object["status"]; !mistake.mendStatus() || !left {
		t.Error("a status that is no object is not dropped")
	}
	stored.Object["spec"] = "none"
	if mistake.mendStatus() {
		t.Error("a spec that does not decode is mended")
	}
}

func TestAServerThatHasTooMuchToDoIsNoError(t *testing.T) {
	busy := fmt.Errorf("create ConfigMap shop/a: %w", apierrors.NewTooManyRequests("later", 7))
	broken := errors.New("create ConfigMap shop/b: refused")
	for name, tc := range map[string]struct {
		err   error
		state v1alpha1.State
		after time.Duration
	}{
		"one object":              {err: busy, state: v1alpha1.StatePending, after: 7 * time.Second},
		"all objects":             {err: errors.Join(busy, busy), state: v1alpha1.StatePending, after: 7 * time.Second},
		"without a delay":         {err: apierrors.NewTooManyRequests("later", 0), state: v1alpha1.StatePending, after: time.Second},
		"another object is wrong": {err: errors.Join(busy, broken), state: v1alpha1.StateError},
	} {
		v := verdict.Evaluate(verdict.Facts{Err: tc.err, Intervals: verdict.Intervals{Retry: time.Minute, Requeue: time.Hour}})
		if v.State != tc.state {
			t.Errorf("%s: state %s, %v", name, v.State, v.Err)
		}
		if v.After != tc.after || (v.Err == nil) != (tc.after > 0) {
			t.Errorf("%s: comes again after %s, %v", name, v.After, v.Err)
		}
	}
}

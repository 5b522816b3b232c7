// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package summarize_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/summarize"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

func success() []summarize.Option {
	return []summarize.Option{
		summarize.WithConditions(plain), summarize.WithResultBuilder(builder),
		summarize.WithReconcileResult(result.Success), summarize.WithTransitionEvents(),
	}
}

func TestAConflictEndsQuietly(t *testing.T) {
	b := newBench(t, nil)
	server := b.obj.DeepCopyObject().(*widget.Widget)
	server.Generation++
	check.NoError(t, b.server.Direct.Update(t.Context(), server))
	out, err := b.end(t, success()...)
	if err != nil || out != (reconcile.Result{RequeueAfter: result.RequeueDelay}) {
		t.Errorf("returned %v, %v", out, err)
	}
	if len(b.recorder.Events) != 0 {
		t.Errorf("event %q about what was not written", <-b.recorder.Events)
	}
	if _, err := b.end(t, append(success(), summarize.WithReconcileError(errAny))...); !errors.Is(err, errAny) {
		t.Errorf("the error of the reconcile is lost: %v", err)
	}
}

func TestAnObjectThatIsGoneIsIgnoredOnRequest(t *testing.T) {
	b := newBench(t, func(w *widget.Widget) { w.Finalizers = []string{"a.b/c"} })
	check.NoError(t, b.server.Direct.Delete(t.Context(), b.obj))
	b.load(t)
	server := b.obj.DeepCopyObject().(*widget.Widget)
	server.Finalizers = nil
	check.NoError(t, b.server.Direct.Update(t.Context(), server))
	out, err := b.end(t, append(success(), summarize.WithIgnoreNotFound())...)
	if err != nil || out != (reconcile.Result{RequeueAfter: interval}) {
		t.Errorf("returned %v, %v", out, err)
	}
}

func TestAnObjectThatIsGoneWithoutADeletionIsAConflict(t *testing.T) {
	for _, options := range [][]summarize.Option{success(), append(success(), summarize.WithIgnoreNotFound())} {
		b := newBench(t, nil)
		check.NoError(t, b.server.Direct.Delete(t.Context(), b.obj.DeepCopyObject().(*widget.Widget)))
		// The next reconcile finds out that there is nothing to do.
		out, err := b.end(t, options...)
		if err != nil || out != (reconcile.Result{RequeueAfter: result.RequeueDelay}) || len(b.recorder.Events) != 0 {
			t.Errorf("returned %v, %v", out, err)
		}
	}
}

func TestAFailedWriteIsAnError(t *testing.T) {
	refused := errors.New("etcd is full")
	b := newBench(t, nil)
	b.server.Before = func(string) error { return refused }
	if _, err := b.end(t, append(success(), summarize.WithReconcileError(errAny))...); !errors.Is(err, refused) || !errors.Is(err, errAny) {
		t.Errorf("error: %v", err)
	}
}

func TestEventsOnTransitionsOnly(t *testing.T) {
	b := newBench(t, nil)
	step := func(name string, want string, options ...summarize.Option) {
		t.Helper()
		b.load(t)
		_, _ = b.end(t, append(success(), options...)...)
		got := ""
		if len(b.recorder.Events) > 0 {
			got = <-b.recorder.Events
		}
		if len(b.recorder.Events) > 0 || !strings.HasPrefix(got, want) || strings.Contains(got, "recovered") != strings.Contains(want, "recovered") || want == "" && got != "" {
			t.Errorf("%s: event %q, want %q", name, got, want)
		}
	}
	failed := summarize.WithReconcileError(errAny)
	step("the first outcome", "Normal Ready")
	step("the same again", "")
	step("a failure", "Warning Error connection refused", failed)
	step("the same again", "", failed)
	step("another message for the same reason", "", summarize.WithReconcileError(errors.New("timeout")))
	step("another reason", "Warning Network", summarize.WithReconcileError(result.NewGeneric(errAny, "Network")))
	step("waiting", "Normal Retrying", summarize.WithReconcileError(result.NewWaiting(errAny, "", time.Second)))
	step("progress is no recovery", "Normal Ready everything is as it should be")
	step("a failure again", "Warning Error connection refused", failed)
	step("recovery", "Normal Ready everything is as it should be (recovered from Error)")
}

func TestEventsOfADeletionAreWarningsIfSomethingFailed(t *testing.T) {
	for _, tc := range []struct{ reason, want string }{
		{"Error", "Warning"}, {"Forbidden", "Warning"}, {"TargetUnreachable", "Warning"},
		{"DeletionProcessing", "Normal"}, {"DeletionBlocked", "Normal"},
	} {
		b := newBench(t, func(w *widget.Widget) {
			w.DeletionTimestamp, w.Finalizers = new(metav1.Now()), []string{"example.com/a"}
		})
		conditions.MarkFalse(b.obj, "Ready", tc.reason, "because")
		check.Must(b.end(t, summarize.WithTransitionEvents()))(t)
		check.SameNamed(t, "event", tc.want+" "+tc.reason+" because", <-b.recorder.Events)
	}
}

func TestRecordContextualError(t *testing.T) {
	for want, err := range map[string]error{
		"":                       nil,
		"Warning Invalid bad":    result.NewStalling(errors.New("bad"), "Invalid"),
		"Normal Dependency soon": result.NewWaiting(errors.New("soon"), "Dependency", time.Second),
		"Warning Error refused":  errors.New("refused"),
	} {
		recorder := events.NewFakeRecorder(2)
		summarize.RecordContextualError(context.Background(), recorder, &widget.Widget{}, result.Empty, err)
		got := ""
		if len(recorder.Events) > 0 {
			got = <-recorder.Events
		}
		if got != want {
			t.Errorf("%v: event %q, want %q", err, got, want)
		}
	}
	ignored := &result.Generic{Ignore: true, Err: errAny}
	summarize.RecordContextualError(t.Context(), nil, &widget.Widget{}, result.Empty, ignored)
	long := events.NewFakeRecorder(1)
	summarize.RecordContextualError(t.Context(), long, &widget.Widget{}, result.Empty, errors.New(strings.Repeat("ü", 2000)))
	if event := <-long.Events; len(event) > 1024+len("Warning Error ") || strings.ContainsRune(event, '�') {
		t.Errorf("the note has %d bytes", len(event))
	}
}

func TestACustomTargetIsSummarisedToo(t *testing.T) {
	b := newBench(t, nil)
	conditions.MarkFalse(b.obj, "Verified", "Unsigned", "")
	_, err := b.end(t, summarize.WithConditions(summarize.Conditions{Target: "Trusted", Summarize: []string{"Verified"}}))
	if err != nil || !conditions.IsFalse(b.obj, "Trusted") || conditions.Has(b.obj, "Ready") {
		t.Errorf("%v, %v", err, b.obj.Status.Conditions)
	}
}

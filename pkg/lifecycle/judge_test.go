// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/widget"
)

// judging is a handler that words its own conditions.
type judging struct {
	*handler
	judge   func(*widget.Widget, lifecycle.Pass) (result.Result, error)
	builder func() result.RuntimeResultBuilder
}

func (j *judging) Judge(_ context.Context, w *widget.Widget, pass lifecycle.Pass) (result.Result, error) {
	j.calls = append(j.calls, "Judge "+string(pass.Stage))
	return j.judge(w, pass)
}

func (j *judging) ResultBuilder(*widget.Widget) result.RuntimeResultBuilder { return j.builder() }

func newJudging(t *testing.T, h *handler, change func(*widget.Widget)) (*bench, *judging) {
	t.Helper()
	b := newBench(t, h, change)
	j := &judging{
		handler: h,
		judge: func(w *widget.Widget, pass lifecycle.Pass) (result.Result, error) {
			w.Status.Phase = "Judged"
			conditions.MarkTrue(w, pass.Now, "Ready", "AllWell", "as judged")
			return result.Success, nil
		},
		builder: func() result.RuntimeResultBuilder {
			return result.AlwaysRequeueResultBuilder{RequeueAfter: time.Hour}
		},
	}
	b.use(j)
	return b, j
}

func TestTheJudgeHasTheWord(t *testing.T) {
	b, j := newJudging(t, &handler{}, nil)
	out, err := b.pass()
	if err != nil || out != (reconcile.Result{RequeueAfter: time.Hour}) {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("Claim", "CreateOrUpdate", "Judge Claim")
	b.wantReady(yes, "AllWell", "as judged")
	if b.read().Status.Phase != "Judged" {
		t.Error("the status of the judge is not written")
	}

	j.apply = func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
		return result.Success, errors.New("refused")
	}
	j.judge = func(w *widget.Widget, pass lifecycle.Pass) (result.Result, error) {
		if pass.Stage != lifecycle.StageApply || pass.Result != result.Success || pass.Err == nil {
			t.Errorf("judged %+v", pass)
		}
		conditions.MarkFalse(w, pass.Now, "Ready", "Hopeless", "translated")
		return result.Empty, result.NewStalling(pass.Err, "Hopeless")
	}
	if _, err := b.pass(); err != nil {
		t.Errorf("the translated error is not returned: %v", err)
	}
	b.wantReady(no, "Hopeless", "translated")
	if !conditions.IsStalled(b.read()) {
		t.Error("the translation does not count")
	}
}

func TestTheJudgeIsAskedOncePerPass(t *testing.T) {
	suspended := true
	b, _ := newJudging(t, &handler{suspended: func() bool { return suspended }}, claimed)
	if _, err := b.pass(); err != nil {
		t.Fatal(err)
	}
	b.wantCalls("UpdateStatus", "Judge Skip")
	suspended = false
	b.delete()
	b.handler.remove = func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) {
		return result.Requeue, nil
	}
	if _, err := b.pass(); err != nil {
		t.Fatal(err)
	}
	b.wantCalls("Delete", "Judge Delete")
	b.handler.remove = nil
	if _, err := b.pass(); err != nil {
		t.Fatal(err)
	}
	b.wantCalls("Delete", "Finished")
}

func TestTheJudgeSeesPanics(t *testing.T) {
	h := &handler{apply: func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) { panic("boom") }}
	b, j := newJudging(t, h, claimed)
	j.judge = func(w *widget.Widget, pass lifecycle.Pass) (result.Result, error) {
		if _, ok := errors.AsType[*lifecycle.PanicError](pass.Err); !ok {
			t.Errorf("judged %v", pass.Err)
		}
		conditions.MarkFalse(w, pass.Now, "Ready", "Panicked", "")
		return result.Empty, pass.Err
	}
	if _, err := b.pass(); err == nil {
		t.Error("the error is lost")
	}
	b.wantReady(no, "Panicked", "")
}

func TestAJudgeOrBuilderThatPanicsIsReplaced(t *testing.T) {
	b, j := newJudging(t, &handler{}, claimed)
	j.judge = func(*widget.Widget, lifecycle.Pass) (result.Result, error) { panic("unjust") }
	if _, err := b.pass(); err == nil {
		t.Error("the error is lost")
	}
	b.wantReady(no, "Error", "the handler panicked: unjust")

	b, j = newJudging(t, &handler{}, claimed)
	j.builder = func() result.RuntimeResultBuilder { panic("broken") }
	if out, err := b.pass(); err != nil || out.RequeueAfter != interval {
		t.Errorf("returned %v, %v", out, err)
	}
}

// The zero value of a Result is Empty. A handler that returns it must not keep the
// verdict of an earlier pass alive.
func TestNothingToDoEndsAnEarlierFailure(t *testing.T) {
	for name, trouble := range map[string]struct {
		res result.Result
		err error
	}{
		"failed":  {err: errors.New("refused")},
		"stalled": {err: result.NewStalling(errors.New("bad"), "Invalid")},
		"waiting": {err: result.NewWaiting(errors.New("not yet"), "Dependency", time.Minute)},
		"working": {res: result.Requeue},
	} {
		t.Run(name, func(t *testing.T) {
			res, err := trouble.res, trouble.err
			b := newBench(t, &handler{apply: func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) { return res, err }}, claimed)
			_, _ = b.pass()
			res, err = result.Empty, nil
			if out, err := b.pass(); err != nil || out.RequeueAfter != interval {
				t.Errorf("returned %v, %v", out, err)
			}
			b.wantReady(yes, "Ready", "everything is as it should be")
			if w := b.read(); conditions.IsReconciling(w) || conditions.IsStalled(w) {
				t.Errorf("conditions: %+v", w.Status.Conditions)
			}
		})
	}
}

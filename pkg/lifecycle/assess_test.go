// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

// assessing is a reconciler that uses sessions, and sets its own conditions.
type assessing struct {
	*handler
	sessions *session.Sessions[*widget.Widget]
	assess   func(*widget.Widget, session.Outcome) (result.Result, error)
}

func (j *assessing) Reconcile(ctx context.Context, request reconcile.Request) (reconcile.Result, error) {
	s, err := j.sessions.Open(ctx, request.NamespacedName, func(w *widget.Widget) session.Settings {
		return session.Settings{Suspended: j.Suspended(w), Orphan: j.Orphaned(w)}
	})
	if err != nil {
		return reconcile.Result{}, err
	}
	w := s.Object
	s.Run(ctx, func(ctx context.Context) (result.Result, error) {
		switch s.Phase {
		case session.PhaseSkip:
			return result.Empty, j.UpdateStatus(ctx, w)
		case session.PhaseDelete:
			return j.Delete(ctx, w, s.Commit)
		default:
			if err := s.Claim(ctx); err != nil {
				return result.Empty, err
			}
			return j.CreateOrUpdate(ctx, w, s.Commit)
		}
	})
	s.Finalize(ctx, func(context.Context) error { return nil })
	if s.Gone {
		j.ForgetObject(ctx, request.NamespacedName)
	}
	return s.Close(ctx, func(outcome session.Outcome) result.Verdict {
		j.calls = append(j.calls, "Assess "+string(outcome.Phase))
		res, err := j.assess(w, outcome)
		return result.Compute(res, err, result.AlwaysRequeueResultBuilder{RequeueAfter: time.Hour})
	})
}

func newAssessing(t *testing.T, h *handler, change func(*widget.Widget)) (*bench, *assessing) {
	t.Helper()
	b := newBench(t, h, change)
	j := &assessing{
		handler: h,
		assess: func(w *widget.Widget, outcome session.Outcome) (result.Result, error) {
			w.Status.Phase = "Assessed"
			conditions.MarkTrue(w, "Ready", "AllWell", "as assessed")
			return result.Success, nil
		},
	}
	j.sessions = check.Must(session.New(b.options))(t)
	b.loop = j
	return b, j
}

func TestAssessDecidesOnConditionsAndResult(t *testing.T) {
	b, j := newAssessing(t, &handler{}, nil)
	out, err := b.reconcile()
	if err != nil || out != (reconcile.Result{RequeueAfter: time.Hour}) {
		t.Errorf("returned %v, %v", out, err)
	}
	b.wantCalls("CreateOrUpdate", "Assess Claim")
	b.wantReady(yes, "AllWell", "as assessed")
	check.SameNamed(t, "the status of the assessment is not written", "Assessed", b.read().Status.Phase)

	j.apply = returns(result.Success, errors.New("refused"))
	j.assess = func(w *widget.Widget, outcome session.Outcome) (result.Result, error) {
		if outcome.Phase != session.PhaseApply || outcome.Result != result.Success || outcome.Err == nil {
			t.Errorf("assessed %+v", outcome)
		}
		conditions.MarkFalse(w, "Ready", "Hopeless", "translated")
		return result.Empty, result.NewStalling(outcome.Err, "Hopeless")
	}
	if _, err := b.reconcile(); err != nil {
		t.Errorf("the translated error is not returned: %v", err)
	}
	b.wantReady(no, "Hopeless", "translated")
	if !conditions.IsStalled(b.read()) {
		t.Error("the translation does not count")
	}
}

func TestTheVerdictIsAskedForOncePerReconcile(t *testing.T) {
	suspended := true
	b, _ := newAssessing(t, &handler{suspended: func() bool { return suspended }}, claimed)
	b.mustReconcile()
	b.wantCalls("UpdateStatus", "Assess Skip")
	suspended = false
	b.delete()
	b.handler.remove = returns(result.Requeue, nil)
	b.mustReconcile()
	b.wantCalls("Delete", "Assess Delete")
	b.handler.remove = nil
	b.mustReconcile()
	b.wantCalls("Delete", "ForgetObject")
}

func TestAssessGetsPanics(t *testing.T) {
	h := &handler{apply: func(context.Context, *widget.Widget, lifecycle.Commit) (result.Result, error) { panic("boom") }}
	b, j := newAssessing(t, h, claimed)
	j.assess = func(w *widget.Widget, outcome session.Outcome) (result.Result, error) {
		if _, ok := errors.AsType[*types.PanicError](outcome.Err); !ok {
			t.Errorf("assessed %v", outcome.Err)
		}
		conditions.MarkFalse(w, "Ready", "Panicked", "")
		return result.Empty, outcome.Err
	}
	if _, err := b.reconcile(); err == nil {
		t.Error("the error is lost")
	}
	b.wantReady(no, "Panicked", "")
}

func TestAfterAPanicInAssessTheStandardConditionsAreSet(t *testing.T) {
	b, j := newAssessing(t, &handler{}, claimed)
	j.assess = func(*widget.Widget, session.Outcome) (result.Result, error) { panic("unjust") }
	check.Fails(t, check.ErrorOf(b.reconcile()), "unjust")
	b.wantReady(no, "Error", "the handler panicked: unjust")
}

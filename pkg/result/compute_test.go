// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

const (
	interval = 10 * time.Minute
	delay    = 30 * time.Second
)

var errPlain = errors.New("no route to host")

func stalling() error { return result.NewStalling(errors.New("bad name"), "Invalid") }
func waiting() error  { return result.NewWaiting(errors.New("not yet"), "Dependency", delay) }
func ignored() error {
	return &result.Generic{Ignore: true, Reason: "Other", Err: errors.New("not mine")}
}

// denied is an error of a user that embeds one of ours.
type denied struct{ *result.Stalling }

// several joins errors and keeps those that are nil.
type several []error

func (s several) Error() string   { return fmt.Sprintf("%d errors", len(s)) }
func (s several) Unwrap() []error { return s }

// row is one line of the truth table.
type row struct {
	name        string
	err         error
	results     []result.Result
	outcome     result.Outcome
	after       time.Duration
	returned    bool
	reconciling result.Effect
	stalled     result.Effect
	observed    bool
	reason      string
	message     string
}

var all = []result.Result{result.Empty, result.Requeue, result.Success}

func table() []row {
	return []row{
		{"success", nil, []result.Result{result.Success}, result.Succeeded, interval, false, result.Remove, result.Remove, true, "Ready", ""},
		{"requeue", nil, []result.Result{result.Requeue}, result.Requeued, result.RequeueDelay, false, result.Keep, result.Remove, false, "Processing", ""},
		{"nothing to do", nil, []result.Result{result.Empty}, result.Finished, 0, false, result.Keep, result.Remove, true, "", ""},
		{"stalling is retried at the interval, whatever the result", stalling(), all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "bad name"},
		{"wrapped stalling is the same, with the whole message", fmt.Errorf("apply: %w", stalling()), all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "apply: bad name"},
		{"waiting brings its delay", waiting(), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Dependency", "not yet"},
		{"wrapped waiting", fmt.Errorf("apply: %w", waiting()), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Dependency", "apply: not yet"},
		{"waiting without a delay is not lost", result.NewWaiting(errPlain, "", 0), all, result.Waited, interval, false, result.Keep, result.Remove, false, "Retrying", errPlain.Error()},
		{"a retriable error with a delay", types.NewRetriableError(errPlain, new(delay)), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Retrying", errPlain.Error()},
		{"a retriable error without", fmt.Errorf("x: %w", types.NewRetriableError(errPlain, nil)), all, result.Waited, interval, false, result.Keep, result.Remove, false, "Retrying", "x: " + errPlain.Error()},
		{"an ignored error counts as done", ignored(), all, result.Ignored, interval, false, result.Remove, result.Remove, true, "Other", "not mine"},
		{"a generic error is returned", result.NewGeneric(errPlain, "Network"), all, result.Failed, 0, true, result.Keep, result.Remove, false, "Network", errPlain.Error()},
		{"an event is returned", result.NewEvent(errPlain, "Network"), all, result.Failed, 0, true, result.Keep, result.Remove, false, "Network", errPlain.Error()},
		{"a wrapped event is the same", fmt.Errorf("x: %w", result.NewEvent(errPlain, "Network")), all, result.Failed, 0, true, result.Keep, result.Remove, false, "Network", "x: " + errPlain.Error()},
		{"any other error is returned", errPlain, all, result.Failed, 0, true, result.Keep, result.Remove, false, "Error", errPlain.Error()},
		{"a terminal error is not final", reconcile.TerminalError(errPlain), all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Stalled", "terminal error: " + errPlain.Error()},
		{"the outermost context counts", result.NewWaiting(stalling(), "Dependency", delay), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Dependency", "bad name"},
		{"joined: a failure beats everything", errors.Join(stalling(), waiting(), errPlain), all, result.Failed, 0, true, result.Keep, result.Remove, false, "Error", "bad name\nnot yet\nno route to host"},
		{"joined: waiting beats stalling", fmt.Errorf("all: %w", errors.Join(stalling(), waiting())), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Dependency", "all: bad name\nnot yet"},
		{"joined: the shorter delay counts", errors.Join(result.NewWaiting(errPlain, "Long", 0), waiting()), all, result.Waited, delay, false, result.Keep, result.Remove, false, "Dependency", "no route to host\nnot yet"},
		{"joined: stalling beats ignored", errors.Join(ignored(), stalling()), all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "not mine\nbad name"},
		{"an aggregate is a join", kerrors.NewAggregate([]error{stalling(), errPlain}), all, result.Failed, 0, true, result.Keep, result.Remove, false, "Error", "[bad name, no route to host]"},
		{"an error that embeds one of ours has its context", denied{&result.Stalling{Reason: "Invalid", Err: errors.New("bad name")}}, all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "bad name"},
		{"joined: a branch that is nil does not count", several{nil, stalling()}, all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "2 errors"},
		{"context around a join covers all of it", result.NewStalling(errors.Join(errPlain, waiting()), "Invalid"), all, result.Stalled, interval, false, result.Remove, result.Mark, true, "Invalid", "no route to host\nnot yet"},
	}
}

// sameError compares by message: an aggregate is not comparable.
var sameError = cmp.Comparer(func(a, b error) bool { return fmt.Sprintf("%T %v", a, a) == fmt.Sprintf("%T %v", b, b) })

func TestCompute(t *testing.T) {
	for _, tc := range table() {
		for _, res := range tc.results {
			t.Run(fmt.Sprintf("%s/%s", tc.name, res), func(t *testing.T) {
				want := result.Verdict{
					Outcome: tc.outcome, Result: reconcile.Result{RequeueAfter: tc.after},
					Reason: tc.reason, Message: tc.message,
					Reconciling: tc.reconciling, Stalled: tc.stalled, Observed: tc.observed,
				}
				if tc.returned {
					want.Err = tc.err
				}
				got := result.Compute(res, tc.err, result.AlwaysRequeueResultBuilder{RequeueAfter: interval})
				check.Equal(t, want, got, sameError)
			})
		}
	}
}

// silent says nothing.
type silent struct{}

func (silent) BuildRuntimeResult(result.Result, error) reconcile.Result {
	return reconcile.Result{}
}

func TestAWaitingIsNeverLost(t *testing.T) {
	for _, builder := range []result.RuntimeResultBuilder{nil, silent{}, result.EventDrivenResultBuilder{}, result.AlwaysRequeueResultBuilder{}} {
		if got := result.Compute(result.Empty, result.NewWaiting(errPlain, "", 0), builder).Result.RequeueAfter; got != time.Minute {
			t.Errorf("%T: without a delay it comes after %s", builder, got)
		}
		if got := result.Compute(result.Empty, waiting(), builder).Result.RequeueAfter; got != delay {
			t.Errorf("%T: with a delay it comes after %s", builder, got)
		}
	}
}

func TestRequeueIsSoonButNeverAtOnce(t *testing.T) {
	for i, want := range map[time.Duration]time.Duration{
		0:                     result.RequeueDelay,
		50 * time.Millisecond: 50 * time.Millisecond,
		time.Hour:             result.RequeueDelay,
	} {
		got := result.AlwaysRequeueResultBuilder{RequeueAfter: i}.BuildRuntimeResult(result.Requeue, nil)
		if d := cmp.Diff(reconcile.Result{RequeueAfter: want}, got); d != "" {
			t.Errorf("interval %s: %s", i, d)
		}
	}
}

// With a terminal error anywhere in what is returned, the object would never reconcile again.
func TestAFailureIsNeverTerminal(t *testing.T) {
	terminal := reconcile.TerminalError(errPlain)
	for name, err := range map[string]error{
		"generic": result.NewGeneric(terminal, "Network"), "event": fmt.Errorf("x: %w", result.NewEvent(terminal, "Network")),
		"joined": errors.Join(errors.New("other"), terminal), "terminal around a failure": reconcile.TerminalError(result.NewGeneric(errPlain, "Network")),
	} {
		got := result.Compute(result.Empty, err, result.AlwaysRequeueResultBuilder{RequeueAfter: interval})
		if got.Outcome != result.Failed || errors.Is(got.Err, reconcile.TerminalError(nil)) || !errors.Is(got.Err, errPlain) || got.Message != err.Error() {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

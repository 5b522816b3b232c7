// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
)

func TestEventDrivenResultBuilder(t *testing.T) {
	const retry = time.Hour
	soon := result.NewWaiting(errPlain, "", 0)
	for _, tc := range []struct {
		name    string
		retry   time.Duration
		res     result.Result
		err     error
		after   time.Duration
		outcome result.Outcome
	}{
		{"success waits for an event", retry, result.Success, nil, 0, result.Succeeded},
		{"nothing to do, too", retry, result.Empty, nil, 0, result.Finished},
		{"requeue is soon", retry, result.Requeue, nil, result.RequeueDelay, result.Requeued},
		{"an ignored error waits for an event", retry, result.Empty, ignored(), 0, result.Ignored},
		{"stalled comes again", retry, result.Empty, stalling(), retry, result.Stalled},
		{"stalled comes again, wrapped", retry, result.Empty, fmt.Errorf("x: %w", stalling()), retry, result.Stalled},
		{"stalled waits for an event without a delay", 0, result.Empty, stalling(), 0, result.Stalled},
		{"waiting brings its delay", retry, result.Empty, waiting(), delay, result.Waited},
		{"waiting without one", retry, result.Empty, soon, retry, result.Waited},
		{"waiting without any", 0, result.Empty, soon, time.Minute, result.Waited},
		{"joined: the shorter delay", retry, result.Empty, errors.Join(soon, waiting()), delay, result.Waited},
		{"an error is the rate limiter's", retry, result.Success, errPlain, 0, result.Failed},
		{"an Event, too", retry, result.Success, result.NewEvent(errPlain, "Network"), 0, result.Failed},
	} {
		t.Run(tc.name, func(t *testing.T) {
			builder := result.EventDrivenResultBuilder{RetryAfter: tc.retry}
			want := reconcile.Result{RequeueAfter: tc.after}
			check.SameNamed(t, "built", want, builder.BuildRuntimeResult(tc.res, tc.err))
			if got := result.Compute(tc.res, tc.err, builder); got.Result != want || got.Outcome != tc.outcome {
				t.Errorf("computed %s, %v, want %s, %v", got.Outcome, got.Result, tc.outcome, want)
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

var errCause = errors.New("no answer")

func classified(severity result.Severity, retry result.Retry, after time.Duration) *result.Error {
	return &result.Error{Severity: severity, Reason: "Why", Retry: retry, After: after, Err: errCause}
}

// TestErrorClasses is the truth table of errors: what a reconcile comes to, and when the
// object comes again in the first and in the third reconcile of that kind.
func TestErrorClasses(t *testing.T) {
	const none = time.Duration(-1) // no class: the ordinary delay of the outcome
	info, warning, fatal := classified(result.SeverityInfo, "", 0), classified(result.SeverityWarning, "", 0), classified(result.SeverityError, "", 0)
	for _, tc := range []struct {
		name         string
		err          error
		outcome      result.Outcome
		reason       string
		first, third time.Duration
	}{
		{"info is fast", info, result.Waited, "Why", time.Second, 4 * time.Second},
		{"warning is slow", warning, result.Failed, "Why", 5 * time.Second, 20 * time.Second},
		{"error is very slow, but comes again", fatal, result.Stalled, "Why", testInterval, testInterval},
		{"no severity is a warning", &result.Error{Err: errCause}, result.Failed, "Error", 5 * time.Second, 20 * time.Second},
		{"an unknown severity is a warning", &result.Error{Severity: "?", Err: errCause}, result.Failed, "Error", 5 * time.Second, 20 * time.Second},
		{"an unknown class is slow", classified(result.SeverityInfo, "?", 0), result.Waited, "Why", 5 * time.Second, 20 * time.Second},
		{"info, slow", classified(result.SeverityInfo, result.RetrySlow, 0), result.Waited, "Why", 5 * time.Second, 20 * time.Second},
		{"info, very slow", classified(result.SeverityInfo, result.RetryVerySlow, 0), result.Waited, "Why", testInterval, testInterval},
		{"warning, fast", classified(result.SeverityWarning, result.RetryFast, 0), result.Failed, "Why", time.Second, 4 * time.Second},
		{"warning, very slow", classified(result.SeverityWarning, result.RetryVerySlow, 0), result.Failed, "Why", testInterval, testInterval},
		{"error, fast", classified(result.SeverityError, result.RetryFast, 0), result.Stalled, "Why", time.Second, 4 * time.Second},
		{"error, slow", classified(result.SeverityError, result.RetrySlow, 0), result.Stalled, "Why", 5 * time.Second, 20 * time.Second},
		{"info with a delay", classified(result.SeverityInfo, "", 7*time.Second), result.Waited, "Why", 7 * time.Second, 7 * time.Second},
		{"warning with a delay", classified(result.SeverityWarning, result.RetryFast, 7*time.Second), result.Failed, "Why", 7 * time.Second, 7 * time.Second},
		{"error with a delay", classified(result.SeverityError, "", 7*time.Second), result.Stalled, "Why", 7 * time.Second, 7 * time.Second},
		{"no reason: that of the outcome", result.NewError(errCause, result.SeverityError, ""), result.Stalled, "Stalled", testInterval, testInterval},
		{"wrapped", fmt.Errorf("create: %w", warning), result.Failed, "Why", 5 * time.Second, 20 * time.Second},
		{"wrapped twice, the outermost counts", &result.Error{Severity: result.SeverityInfo, Reason: "Outer", Err: fatal}, result.Waited, "Outer", time.Second, 4 * time.Second},
		{"context around it hides it", result.NewWaiting(fatal, "Outer", time.Minute), result.Waited, "Outer", none, none},
		{"so does a retriable error", types.NewRetriableError(info, new(time.Minute)), result.Waited, "Retrying", none, none},
		{"plain", errCause, result.Failed, "Error", none, none},
		{"stalling", result.NewStalling(errCause, "S"), result.Stalled, "S", none, none},
		{"joined: the more urgent outcome counts", errors.Join(fatal, warning, info), result.Failed, "Why", 5 * time.Second, 20 * time.Second},
		{"joined: info before error", errors.Join(fatal, info), result.Waited, "Why", time.Second, 4 * time.Second},
		{"joined: of one outcome the sooner one", errors.Join(classified(result.SeverityWarning, result.RetryVerySlow, 0), classified(result.SeverityWarning, result.RetryFast, 0)), result.Failed, "Why", time.Second, 4 * time.Second},
		{"joined: a delay may be the sooner one", errors.Join(classified(result.SeverityWarning, result.RetrySlow, 0), classified(result.SeverityWarning, "", 2*time.Second)), result.Failed, "Why", 2 * time.Second, 2 * time.Second},
		{"joined with a plain one: it is not put off", errors.Join(classified(result.SeverityWarning, result.RetryVerySlow, 0), errCause), result.Failed, "Why", none, none},
		{"joined in a wrapper", fmt.Errorf("all: %w", errors.Join(fatal, classified(result.SeverityError, result.RetryFast, 0))), result.Stalled, "Why", time.Second, 4 * time.Second},
		{"nothing in it", &result.Error{Severity: result.SeverityError}, result.Stalled, "Stalled", testInterval, testInterval},
		{"a nil pointer", (*result.Error)(nil), result.Failed, "Error", none, none},
	} {
		t.Run(tc.name, func(t *testing.T) {
			verdict := result.Compute(result.Empty, tc.err, nil)
			if verdict.Outcome != tc.outcome || verdict.Reason != tc.reason {
				t.Errorf("%s, %s; want %s, %s", verdict.Outcome, verdict.Reason, tc.outcome, tc.reason)
			}
			for attempt, want := range map[int]time.Duration{0: tc.first, 2: tc.third} {
				ofClass := func(class result.Retry) time.Duration { return delayOf(class, attempt, testInterval) }
				got := none
				if urgent := urgentError(tc.err, verdict.Outcome, ofClass); urgent != nil {
					got = delayOfError(urgent, ofClass)
				}
				if got != want {
					t.Errorf("attempt %d: after %s, want %s", attempt, got, want)
				}
			}
		})
	}
}

const testInterval = 10 * time.Minute

func TestDelaysOfTheClasses(t *testing.T) {
	seconds := func(class result.Retry, interval time.Duration) (delays []float64) {
		for attempt := range 8 {
			delays = append(delays, delayOf(class, attempt, interval).Seconds())
		}
		return delays
	}
	for _, tc := range []struct {
		class    result.Retry
		interval time.Duration
		want     []float64
	}{
		{result.RetryFast, testInterval, []float64{1, 2, 4, 8, 16, 30, 30, 30}},
		{result.RetrySlow, testInterval, []float64{5, 10, 20, 40, 80, 160, 180, 180}},
		{result.RetryVerySlow, testInterval, []float64{600, 600, 600, 600, 600, 600, 600, 600}},
		{result.RetryFast, 10 * time.Second, []float64{1, 2, 4, 8, 10, 10, 10, 10}},
		{result.RetrySlow, time.Second, []float64{1, 1, 1, 1, 1, 1, 1, 1}},
	} {
		if diff := cmp.Diff(tc.want, seconds(tc.class, tc.interval)); diff != "" {
			t.Errorf("%s with interval %s (-want +got):\n%s", tc.class, tc.interval, diff)
		}
	}
}

func TestARateLimiterForgetsTheNextDelay(t *testing.T) {
	l, request := NewRateLimiter(), reconcile.Request{}
	l.setNext(request, time.Minute)
	l.Forget(request)
	if got := l.When(request); got >= time.Minute {
		t.Errorf("held back for %s", got)
	}
}

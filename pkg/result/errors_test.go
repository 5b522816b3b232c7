// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/corbel-run/corbel/pkg/result"
)

func TestErrorsAreFoundThroughWrapping(t *testing.T) {
	cause := errors.New("cause")
	for _, err := range []error{
		result.NewStalling(cause, "R"), result.NewWaiting(cause, "R", 0), result.NewGeneric(cause, "R"), result.NewEvent(cause, "R"),
		result.NewError(cause, result.SeverityInfo, "R"), result.NewError(cause, result.SeverityWarning, "R"),
		result.NewError(cause, result.SeverityError, "R"), result.NewError(cause, "", "R"),
	} {
		if wrapped := fmt.Errorf("create: %w", err); !errors.Is(wrapped, cause) || wrapped.Error() != "create: cause" {
			t.Errorf("%T does not show its cause", err)
		}
	}
	if text := (&result.Error{}).Error(); text == "" {
		t.Error("an error without a cause says nothing")
	}
}

func TestErrorsWithoutACauseDoNotPanic(t *testing.T) {
	for _, tc := range []struct {
		err     error
		want    string
		outcome result.Outcome
	}{
		{result.NewStalling(nil, "Reason"), "Reason", result.Stalled},
		{&result.Stalling{}, "stalled", result.Stalled},
		{&result.Waiting{}, "waiting", result.Waited},
		{&result.Generic{}, "failed", result.Failed},
		{&result.Event{}, "failed", result.Failed},
		{(*result.Stalling)(nil), "stalled", result.Stalled},
		{(*result.Waiting)(nil), "waiting", result.Waited},
		{(*result.Generic)(nil), "failed", result.Failed},
		{(*result.Event)(nil), "failed", result.Failed},
		{errors.Join((*result.Waiting)(nil), errPlain), "waiting\nno route to host", result.Failed},
		{errors.Join((*result.Stalling)(nil), (*result.Event)(nil), (*result.Error)(nil), (*result.RequeueError)(nil)), "stalled\nfailed\nfailed\nnot now", result.Failed},
	} {
		if tc.err.Error() != tc.want || errors.Unwrap(tc.err) != nil {
			t.Errorf("%T says %q, want %q", tc.err, tc.err, tc.want)
		}
		if got := result.Compute(result.Empty, tc.err, nil).Outcome; got != tc.outcome {
			t.Errorf("%T counts as %s, want %s", tc.err, got, tc.outcome)
		}
	}
}

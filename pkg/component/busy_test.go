// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

func TestAServerThatHasTooMuchToDoIsNoError(t *testing.T) {
	busy := fmt.Errorf("create ConfigMap shop/a: %w", apierrors.NewTooManyRequests("later", 7))
	broken := errors.New("create ConfigMap shop/b: refused")
	for name, tc := range map[string]struct {
		err   error
		state State
		after time.Duration
	}{
		"one object":              {err: busy, state: StatePending, after: 7 * time.Second},
		"all objects":             {err: errors.Join(busy, busy), state: StatePending, after: 7 * time.Second},
		"without a delay":         {err: apierrors.NewTooManyRequests("later", 0), state: StatePending, after: time.Second},
		"another object is wrong": {err: errors.Join(busy, broken), state: StateError},
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

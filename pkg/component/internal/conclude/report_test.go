// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
)

func TestTheTimeOfTheNextFullReconcileIsKeptUntilThen(t *testing.T) {
	now := time.Unix(1000, 0)
	found := Findings{NextFull: now.Add(time.Minute)}
	for name, tc := range map[string]struct {
		now  time.Time
		want time.Duration
	}{
		"long before":   {now: now, want: time.Minute},
		"right before":  {now: now.Add(time.Minute - time.Millisecond), want: verdict.MinInterval},
		"when it is":    {now: now.Add(time.Minute), want: time.Hour},
		"long after it": {now: now.Add(time.Hour), want: time.Hour},
	} {
		if got := found.requeue(time.Hour, tc.now); got != tc.want {
			t.Errorf("%s: the requeue interval is %s", name, got)
		}
	}
	if got := (Findings{}).requeue(time.Hour, now); got != time.Hour {
		t.Errorf("without a full reconcile that is due, the requeue interval is %s", got)
	}
}

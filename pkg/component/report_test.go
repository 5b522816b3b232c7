// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/internal/report"
)

// waitFor makes the wait of an engine; text is "group/Kind namespace/name".
func waitFor(text, reason, message string) report.Wait {
	var wait report.Wait
	group, rest, _ := strings.Cut(text, "/")
	kind, name, _ := strings.Cut(rest, " ")
	wait.Key.Group, wait.Key.Kind, wait.Key.Name = group, kind, name
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		wait.Key.Namespace, wait.Key.Name = namespace, name
	}
	wait.Message = message
	setReason(&wait.Reason, reason)
	return wait
}

// setReason exists because the type of a reason cannot be named here.
func setReason[R ~string](reason *R, text string) { *reason = R(text) }

func TestFallback(t *testing.T) {
	now := time.Unix(1000, 0)
	h := &handler{opener: &opener{now: func() time.Time { return now }}}
	known := &remembered{}
	until := func(d time.Duration) report.Wait {
		wait := waitFor("/ConfigMap a", "NotReady", "")
		wait.Until = now.Add(d)
		return wait
	}
	first, second := h.fallback(known, nil), h.fallback(known, nil)
	if first <= 0 || second <= first {
		t.Errorf("waits %s, then %s", first, second)
	}
	for range 20 {
		h.fallback(known, nil)
	}
	if got := h.fallback(known, []report.Wait{waitFor("/ConfigMap b", "NotReady", ""), until(2 * time.Second)}); got != 2*time.Second {
		t.Errorf("requeued after %s, though an object changes after 2s", got)
	}
	if got := h.fallback(known, []report.Wait{until(-time.Hour)}); got != minFallback {
		t.Errorf("requeued after %s, though an object should have changed", got)
	}
	known.idle.Reset()
	if got := h.fallback(known, nil); got != first {
		t.Errorf("after progress it waits %s, not %s", got, first)
	}
}

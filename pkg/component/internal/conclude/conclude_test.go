// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conclude

import (
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestProgressLeavesOutIgnoredObjects(t *testing.T) {
	for want, outcome := range map[string]reconciler.Outcome{
		"1/2": {Settled: 3, Total: 4, Ignored: 2},
		"0/0": {Settled: 2, Total: 2, Ignored: 2},
		"3/4": {Settled: 3, Total: 4},
	} {
		if got := progressOf(outcome); got != want {
			t.Errorf("%s of %+v, want %s", got, outcome, want)
		}
	}
}

func TestFallback(t *testing.T) {
	now := time.Unix(1000, 0)
	known := &Memory{}
	wait := func(reason report.WaitReason, after time.Duration) report.Wait {
		return report.Wait{Reason: reason, Until: now.Add(after)}
	}
	notReady := report.Wait{Reason: report.WaitReady}
	first, second := known.fallback(nil, now), known.fallback(nil, now)
	if first <= 0 || second <= first {
		t.Errorf("waits %s, then %s", first, second)
	}
	for range 20 {
		known.fallback(nil, now)
	}
	if got := known.fallback([]report.Wait{notReady, wait(report.WaitReady, 2*time.Second)}, now); got != 2*time.Second {
		t.Errorf("requeued after %s, though an object changes after 2s", got)
	}
	if got := known.fallback([]report.Wait{wait(report.WaitReady, -time.Hour)}, now); got != MinDelay {
		t.Errorf("requeued after %s, though an object should have changed", got)
	}
	known.Restart()
	if got := known.fallback(nil, now); got != first {
		t.Errorf("after progress it waits %s, not %s", got, first)
	}
}

func TestAComponentThatWaitsForAConflictIsRequeuedInTime(t *testing.T) {
	now := time.Unix(1000, 0)
	contest := report.Wait{Reason: report.WaitConflict, Until: now.Add(4 * time.Minute)}
	known := &Memory{}
	if got := known.fallback([]report.Wait{contest}, now); got < 3*time.Minute || got > 4*time.Minute {
		t.Errorf("it comes again after %s", got)
	}
	if got := known.fallback([]report.Wait{contest, {Reason: report.WaitReady}}, now); got > time.Second {
		t.Errorf("what else is waited for is looked at after %s", got)
	}
}

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

func TestEveryAnnotationOfAComponentIsKnown(t *testing.T) {
	for _, folder := range []string{"api/v1alpha1", "internal/vocabulary"} {
		file, err := parser.ParseFile(token.NewFileSet(), "../../../../"+folder+"/annotations.go", nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(node ast.Node) bool {
			spec, ok := node.(*ast.ValueSpec)
			if !ok || len(spec.Values) == 0 {
				return true
			}
			name, _ := strconv.Unquote(spec.Values[0].(*ast.BasicLit).Value)
			for line := range strings.Lines(spec.Doc.Text()) {
				if of, found := strings.CutPrefix(line, "On: "); found && strings.Contains(of, "the component") != slices.Contains(annotations, name) {
					t.Errorf("annotation %s, on %s", name, of)
				}
			}
			return true
		})
	}
}

func TestTheConditionAboutManyDriftedObjectsStaysShort(t *testing.T) {
	var many []report.Deviation
	for range 100 {
		key := report.Key{Kind: "ConfigMap", Namespace: "shop", Name: strings.Repeat("n", 250)}
		many = append(many, report.Deviation{Key: key, Drift: report.Drift{
			Manager: strings.Repeat("m", 120), At: time.Now(), Fields: []string{strings.Repeat("f", 120), strings.Repeat("g", 120)},
		}})
	}
	if message := driftMessage(many); len(message) > 1024 || !strings.HasSuffix(message, "and 97 more") {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

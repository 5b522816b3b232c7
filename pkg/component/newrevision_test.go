// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"slices"
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// A status may be written at any moment of a reconcile: before the objects, after each record, and when the process stops.
func TestNoStatusSaysReadyOfARevisionThatWasNotReady(t *testing.T) {
	annotate := func(annotation, value string) func(*operated) {
		return func(o *operated) {
			o.obj.Annotations = map[string]string{"test.corbel.run/" + annotation: value}
		}
	}
	one, two := version{digest: "1", blind: true}, version{digest: "2", text: "other", blind: true}
	for name, test := range map[string]struct {
		first  []version // lead to the revision that is ready; without any it is that of version one
		change func(*operated)
		next   version
		writes int // before the reconcile ends
	}{
		"another version of the operator": {change: func(*operated) {}, next: two, writes: 1},
		"a turn of a roll-out": {change: func(o *operated) {
			annotate(vocabulary.AnnotationRollout, "promote")(o)
			o.rollOut(two)
		}, next: two, writes: 2},
		"an approval that was there before": {change: func(o *operated) {
			o.settings.requireApproval = true
			asked := *o
			asked.obj = o.obj.DeepCopyObject().(*widget)
			if _, err := asked.reconcile(two); asked.obj.Status.Approval == nil {
				o.Fatalf("no approval is asked for: %v", err)
			}
			annotate(vocabulary.AnnotationApprove, asked.obj.Status.Approval.Hash)(o)
		}, next: two, writes: 2},
		"a change of the spec":  {change: func(o *operated) { o.obj.Generation, o.obj.Spec.Size = 2, 3 }, next: one, writes: 1},
		"a rollback":            {first: []version{one, two}, change: annotate(vocabulary.AnnotationRollbackTo, "1"), next: two, writes: 1},
		"the end of a rollback": {first: []version{one, two, one}, change: func(o *operated) { o.obj.Annotations = nil }, next: two, writes: 1},
	} {
		t.Run(name, func(t *testing.T) {
			o := operate(t, ReconcilerOptions{})
			o.engine.record, o.engine.outcome = true, reconciler.Outcome{Inventory: someInventory, Total: 1, Settled: 1}
			if test.first == nil {
				test.first = []version{one}
			}
			for i, v := range test.first {
				if i == 2 {
					annotate(vocabulary.AnnotationRollbackTo, "1")(o)
				}
				if _, err := o.reconcile(v); err != nil {
					t.Fatal(err)
				}
				o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply})
			}
			before := o.obj.Status.Revision
			if !o.obj.Status.IsReady() || before != int64(len(test.first)) {
				t.Fatalf("revision %d is %s", before, o.obj.Status.State)
			}
			test.change(o)
			writes := 0
			check := func(when string) {
				status := o.obj.GetStatus()
				if _, _, message := status.GetState(); status.Revision != before+1 || status.IsReady() || conditions.IsTrue(conditionsOf(o.obj), v1alpha1.ConditionReady) {
					t.Errorf("%s: revision %d is %s: %s", when, status.Revision, status.State, message)
				}
			}
			o.events.lines, o.engine.outcome.Steps = nil, map[string]int{"create": 2}
			o.engine.outcome.Settled, o.engine.outcome.Waiting = 0, []report.Wait{waitFor("/ConfigMap shop/a", "NotReady", "not yet")}
			o.revisions.Renderer.Generator, o.memory = test.next, newMemory()
			_, err := o.applier.createOrUpdate(t.Context(), o.obj, func(context.Context) error {
				writes++
				check("before the end")
				return nil
			})
			check("when the process stops")
			o.report(t.Context(), o.obj, session.Outcome{Phase: session.PhaseApply, Err: err})
			check("at the end")
			if !slices.Contains(o.events.lines, "Normal|Applied|Apply|created 2 objects") {
				t.Errorf("no event says at once what was done: %q", o.events.lines)
			}
			if writes != test.writes {
				t.Errorf("%d writes before the end, want %d", writes, test.writes)
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
)

type object = map[string]any

// invalid is a row about a spec, or an annotation, that only a person can mend.
func invalid(name string, spec object, says ...string) badInput {
	return badInput{name: name, spec: spec, state: v1alpha1.StateError, reason: vocabulary.ReasonSpecInvalid, says: says}
}

// flagged is a row about an annotation of the component.
func flagged(annotation, value string, says ...string) badInput {
	row := invalid("annotation "+annotation, good, append(says, operatorName+"/"+annotation)...)
	row.annotations = map[string]string{operatorName + "/" + annotation: value}
	return row
}

// harmless is a row about something odd that does not matter.
func harmless(name string, status func(*widget.Status)) badInput {
	return badInput{name: name, spec: good, status: status}
}

var good = object{"values": object{"good": "1"}}

// What is wrong with a component itself. Each mistake has a test without a server: TestDirectives, TestAccess, TestAbsentReferences and
// TestMistakesInReferences. Tests of their own hold what takes more than
// one reconcile: durations that were stored before the schema forbade them
// (TestAStoredObjectThatCannotBeDecodedStopsNoOtherAndSaysWhatIsWrong), records that were
// forged (TestAForgedInventoryHealsAndTouchesNothingOfOthers),
// and hooks in all positions (TestAHookThatMisbehavesIsNamedInEveryPosition).
func TestABadComponentSaysWhatIsWrongWithItAndHarmsNothing(t *testing.T) {
	tests := []badInput{
		invalid("an illegal namespace and an illegal name", object{"namespace": "..", "name": "é"}, `deployment namespace ".."`, `deployment name "é"`),
		invalid("a service account of another namespace", object{"serviceAccountName": "kube-system:admin"}, `service account "kube-system:admin"`),
		{name: "a key that is not there", given: func(b *bed) { b.createSecret("creds", map[string]string{"user": canary}) },
			spec: object{"password": object{"name": "creds", "key": "pin"}}, state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, says: []string{"/creds has no key pin"}},
		flagged("management-policy", "detach-on-delte", `"detach-on-delte" must be one of`),
		flagged("allow-empty", "yes", `"yes"`),

		harmless("a state of a deletion without a deletion", func(s *widget.Status) { s.State = v1alpha1.StateDeleting }),
		harmless("counters and times that cannot be", func(s *widget.Status) {
			s.Revision, s.ObservedGeneration, s.AppliedGeneration, s.Progress = -7, 1<<60, -3, "many/few"
			s.ProcessingSince, s.LastAppliedAt = &metav1.Time{Time: time.Unix(1<<34, 0)}, &metav1.Time{Time: time.Unix(0, 0)}
			s.ProcessingDigest = strings.Repeat("d", 1000)
		}),
		harmless("conditions of others that lie", func(s *widget.Status) {
			for _, kind := range []string{"Ready", "Stalled", "Reconciling"} {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Lie", Message: "all is well",
					ObservedGeneration: 1 << 60, LastTransitionTime: metav1.Now()})
			}
		}),
		{name: "a name of 253 characters", called: strings.Repeat(strings.Repeat("n", 62)+".", 4) + "n", spec: good, given: smallStatus},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

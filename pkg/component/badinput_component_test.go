// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

type object = map[string]any

// invalid is a row about a spec that only a person can mend.
func invalid(name string, spec object, says ...string) badInput {
	return badInput{name: name, spec: spec, state: v1alpha1.StateError, reason: vocabulary.ReasonSpecInvalid, says: says}
}

// refused is a row about a spec that the API server does not take.
func refused(name string, spec object, says string) badInput {
	return badInput{name: name, spec: spec, refused: says}
}

// flagged is a row about an annotation of the component.
func flagged(annotation, value string, says ...string) badInput {
	row := invalid("annotation "+annotation, good, append(says, operatorName+"/"+annotation)...)
	row.annotations = map[string]string{operatorName + "/" + annotation: value}
	return row
}

// waits is a row about something that is not there yet.
func waits(name string, spec object, says ...string) badInput {
	return badInput{name: name, spec: spec, state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, says: says, after: [2]time.Duration{time.Second, 10 * time.Second}}
}

// retrying is a row about an error that asks for a delay.
func retrying(name string, delay *time.Duration, shortest, longest time.Duration) badInput {
	return badInput{name: name, state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, says: []string{"not yet"}, after: [2]time.Duration{shortest, longest},
		generator: manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, types.NewRetriableError(errors.New("not yet"), delay)
		})}
}

// harmless is a row about something odd that does not matter.
func harmless(name string, spec object, status func(*widget.Status)) badInput {
	return badInput{name: name, spec: spec, status: status}
}

var good = object{"values": object{"good": "1"}}

const years = 100 * 365 * 24 * time.Hour

// What is wrong with a component itself. Tests of their own hold what takes more than
// one reconcile: durations that were stored before the schema forbade them
// (TestAStoredObjectThatCannotBeDecodedStopsNoOtherAndSaysWhatIsWrong), records that were
// forged (TestAForgedInventoryHealsAndTouchesNothingOfOthers,
// TestTheSchemaOfTheInventoryKeepsOutWhatCannotBeRead), suspension
// (TestAComponentThatIsSuspendedBetweenTwoWavesStopsThereAndGoesOnLater) and hooks in all
// positions (TestAHookThatMisbehavesIsNamedInEveryPosition).
func TestABadComponentSaysWhatIsWrongWithItAndHarmsNothing(t *testing.T) {
	long := strings.Repeat("x", 300)
	tests := []badInput{
		refused("an interval that is a word", object{"requeueInterval": "abc"}, "spec.requeueInterval"),
		refused("an interval of ten million characters", object{"timeout": strings.Repeat("9", 10_000_000)}, "limit is"),
		{name: "an interval of zero", spec: object{"values": good["values"], "requeueInterval": "0s"}, after: [2]time.Duration{8 * time.Minute, 10 * time.Minute}},
		{name: "an interval of almost nothing", spec: object{"values": good["values"], "requeueInterval": "0.000001ms"}, after: [2]time.Duration{time.Second / 2, time.Second}},

		invalid("a service account of another namespace", object{"serviceAccountName": "kube-system:admin"}, `service account "kube-system:admin"`),
		invalid("a service account that is a path", object{"serviceAccountName": "../x"}, `service account "../x"`),
		invalid("a service account with a blank", object{"serviceAccountName": "a b"}, `service account "a b"`),
		invalid("a service account with a dash at its end", object{"serviceAccountName": "dépôt-"}, "service account"),
		refused("a service account of three hundred characters", object{"serviceAccountName": long}, "spec.serviceAccountName"),

		invalid("an illegal namespace", object{"namespace": "a.b"}, `deployment namespace "a.b"`),
		invalid("an illegal name", object{"name": "A/b"}, `deployment name "A/b"`),
		invalid("an illegal namespace and an illegal name", object{"namespace": "..", "name": "é"}, `deployment namespace ".."`, `deployment name "é"`),
		refused("a namespace of sixty-four characters", object{"namespace": long[:64]}, "spec.namespace"),
		refused("a name of three hundred characters", object{"name": long}, "spec.name"),

		waits("a Secret that is not there", object{"password": object{"name": "nowhere"}}, "spec.password: Secret ", "/nowhere does not exist"),
		waits("a config map that is not there", object{"settings": object{"name": "nowhere"}}, "spec.settings: ConfigMap ", "/nowhere does not exist"),
		{name: "a key that is not there", given: func(b *bed) { b.createSecret("creds", map[string]string{"user": canary}) },
			spec: object{"password": object{"name": "creds", "key": "pin"}}, state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, says: []string{"/creds has no key pin"}},
		invalid("a key that is a path", object{"password": object{"name": "creds", "key": "a/b"}}, `spec.password: key "a/b" in Secret creds`),
		invalid("a Secret of another namespace", object{"password": object{"name": "kube-system/creds"}}, `spec.password: Secret "kube-system/creds"`),
		invalid("a config map of another namespace", object{"texts": object{"x": object{"name": "../creds", "key": "k"}}}, `spec.texts[x]: ConfigMap "../creds"`),
		refused("a Secret without a name", object{"password": object{"key": "k"}}, "spec.password.name"),
		waits("a kubeconfig that is not there", object{"kubeConfig": object{"secretRef": object{"name": "nowhere"}}}, "spec.kubeConfig.secretRef: Secret ", "/nowhere does not exist"),

		refused("a policy that does not exist", object{"updatePolicy": "Sometimes"}, "spec.updatePolicy"),
		invalid("a managed type that is no pattern", object{"additionalManagedTypes": []any{object{"group": "a.*", "kind": "F*"}}},
			`additional managed type 1: group "a.*"`, `additional managed type 1: kind "F*"`),
		flagged("management-policy", "detach-on-delte", `"detach-on-delte" must be one of`),
		flagged("allow-empty", "yes", `"yes"`),
		flagged("drift-policy", "warn", `"warn" is not one of repair, report, ignore`),

		harmless("a state of a deletion without a deletion", good, func(s *widget.Status) { s.State = v1alpha1.StateDeleting }),
		harmless("counters and times that cannot be", good, func(s *widget.Status) {
			s.Revision, s.ObservedGeneration, s.AppliedGeneration, s.Progress = -7, 1<<60, -3, "many/few"
			s.ProcessingSince, s.LastAppliedAt = &metav1.Time{Time: time.Unix(1<<34, 0)}, &metav1.Time{Time: time.Unix(0, 0)}
			s.ProcessingDigest = strings.Repeat("d", 1000)
		}),
		harmless("conditions of others that lie", good, func(s *widget.Status) {
			for _, kind := range []string{"Ready", "Stalled", "Reconciling"} {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Lie", Message: "all is well",
					ObservedGeneration: 1 << 60, LastTransitionTime: metav1.Now()})
			}
		}),
		{name: "a name of 253 characters", called: strings.Repeat(strings.Repeat("n", 62)+".", 4) + "n", spec: good, given: smallStatus},
		{name: "a name with a character that no name has", called: "naïve", refused: "metadata.name"},

		retrying("a negative delay", new(-5*time.Minute), time.Second, 10*time.Minute),
		retrying("a delay of zero", new(time.Duration(0)), time.Second, 10*time.Minute),
		retrying("a delay of a hundred years", new(years), time.Hour, 24*time.Hour),
		retrying("no delay", nil, 8*time.Minute, 10*time.Minute),

		{name: "a hook that changes the spec", spec: good, state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			says: []string{"pre-reconcile hook 1: changed the spec of the component"},
			hook: func(_ context.Context, _ client.Client, w *widget.Widget) error {
				w.Spec.Values["more"] = "1"
				return nil
			}},
		{name: "a hook that changes the metadata", spec: good, state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			says: []string{"pre-reconcile hook 1: changed the metadata of the component"},
			hook: func(_ context.Context, _ client.Client, w *widget.Widget) error {
				w.Labels = map[string]string{"a": "b"}
				return nil
			}},
		{name: "a hook that panics", spec: good, state: v1alpha1.StateError, reason: vocabulary.ReasonError,
			says: []string{"pre-reconcile hook 1: panicked: oh"},
			hook: func(context.Context, client.Client, *widget.Widget) error { panic("oh") }},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

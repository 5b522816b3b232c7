// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

var rewrite = flag.Bool("rewrite", false, "write "+statusesFile)

// statusesFile has the status of a component for each reason. Health checks of other tools are
// tested with it, see test/ops.
const statusesFile = "testdata/statuses.yaml"

// recordedStatus is the status of a component that was judged in its generation 3.
type recordedStatus struct {
	Reason string         `json:"reason"`
	Status map[string]any `json:"status"`
}

// factsOf are facts that lead to each reason.
func factsOf() map[string]Facts {
	plain := errors.New("the server said no")
	facts := map[string]Facts{
		vocabulary.ReasonFirstSeen:          {Claimed: true},
		vocabulary.ReasonProcessing:         {Waiting: "Deployment shop/api: 1 of 3"},
		vocabulary.ReasonReady:              {Done: "2 of 2 dependent objects are ready"},
		vocabulary.ReasonError:              {Err: plain},
		vocabulary.ReasonTimeout:            {Waiting: "Deployment shop/api: 1 of 3", TimedOut: true},
		vocabulary.ReasonSuspended:          {Skipped: "the component is suspended"},
		vocabulary.ReasonRetrying:           {Err: types.NewRetriableError(plain, nil)},
		vocabulary.ReasonDeletionRetrying:   {Deleting: true, Err: types.NewRetriableError(plain, nil)},
		vocabulary.ReasonDeletionBlocked:    {Deleting: true, Blocked: "CustomResourceDefinition foos: 2 instances"},
		vocabulary.ReasonDeletionProcessing: {Deleting: true, Waiting: "Namespace shop: terminating"},
		vocabulary.ReasonObjectFailed:       {Waiting: "Job shop/migrate: BackoffLimitExceeded", Failed: true},
		vocabulary.ReasonForbidden:          {Err: apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", plain)},
		vocabulary.ReasonInvalid:            {Err: &reconciler.InvalidError{Err: plain}},
		vocabulary.ReasonBreakingChange:     {Err: &reconciler.BreakingChangeError{Err: plain}},
		vocabulary.ReasonSpecInvalid:        {Err: &InvalidError{plain}},
		vocabulary.ReasonOwnerConflict:      {Err: &reconciler.OwnerConflictError{Object: "ConfigMap shop/a", Message: "belongs to Helm release shop/web"}},
		vocabulary.ReasonTargetChanged:      {Err: &reconciler.TargetChangedError{Recorded: "a", Actual: "b"}},
		vocabulary.ReasonRolledBack:         {RolledBack: "revision 2 failed"},
		vocabulary.ReasonApprovalRequired:   {Held: Held{Reason: vocabulary.ReasonApprovalRequired, Message: "revision 2 waits"}},
		vocabulary.ReasonTargetUnreachable:  {Unreachable: "the cluster does not answer"},
	}
	for _, reason := range []string{
		vocabulary.ReasonCRDOutdated, vocabulary.ReasonTargetAddressDenied, vocabulary.ReasonTargetIsLocal, vocabulary.ReasonKubeconfigEmpty,
		vocabulary.ReasonKubeconfigTooLarge, vocabulary.ReasonKubeconfigInvalid, vocabulary.ReasonKubeconfigInsecure, vocabulary.ReasonKubeconfigForbiddenField,
	} {
		facts[reason] = Facts{Err: result.NewStalling(plain, reason)}
	}
	return facts
}

// documentedReason matches a reason of components in the reference.
var documentedReason = regexp.MustCompile(`(?m)^### (\w+)\n\n[^#]*?- Conditions: (.*)\n- State: (.*)\n`)

// TestStatusesAreAsDocumented compares the status for each reason with the reference, with the reading of
// kstatus, and with the recorded file.
func TestStatusesAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/conditions.md")
	if err != nil {
		t.Fatal(err)
	}
	facts := factsOf()
	documented := documentedReason.FindAllStringSubmatch(string(page), -1)
	if len(documented) != len(facts) {
		t.Errorf("%d reasons are documented, and the test has facts for %d", len(documented), len(facts))
	}
	var recorded []recordedStatus
	for _, reason := range documented {
		f, known := facts[reason[1]]
		if !known {
			t.Errorf("the test has no facts that lead to the reason %s", reason[1])
			continue
		}
		f.Intervals = Intervals{Requeue: testRequeue, Retry: testRetry, Timeout: 5 * time.Minute}
		v := Evaluate(f)
		if v.Reason != reason[1] || string(v.State) != reason[3] {
			t.Errorf("got reason %s and state %s, want %s and %s", v.Reason, v.State, reason[1], reason[3])
		}
		var written []metav1.Condition
		setter := conditions.For(&metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Generation: 3}}, &written)
		v.SetConditions(setter)
		conditionstest.Check(t, setter)
		for i := range written {
			written[i].LastTransitionTime = metav1.Unix(1000, 0)
		}
		var texts []string
		for _, conditionType := range []string{v1alpha1.ConditionReady, v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled} {
			if condition := conditions.Get(setter, conditionType); condition != nil {
				texts = append(texts, conditionType+" "+string(condition.Status))
			}
		}
		if got := strings.Join(texts, ", "); got != reason[2] {
			t.Errorf("%s: the conditions are %s, and %s are documented", reason[1], got, reason[2])
		}
		object := recordedStatus{Reason: v.Reason, Status: map[string]any{"observedGeneration": int64(3), "state": string(v.State), "conditions": unstructuredOf(t, written)}}
		if got, want := kstatusOf(t, object), wantedKstatus(v); got != want {
			t.Errorf("%s: kstatus reads %s, want %s", reason[1], got, want)
		}
		recorded = append(recorded, object)
	}
	want, err := yaml.Marshal(recorded)
	if err != nil {
		t.Fatal(err)
	}
	if *rewrite {
		if err := os.MkdirAll(filepath.Dir(statusesFile), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(statusesFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(statusesFile)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("%s is out of date: run this test with -rewrite (-want +got):\n%s", statusesFile, diff)
	}
}

func unstructuredOf(t *testing.T, written []metav1.Condition) (list []any) {
	t.Helper()
	text, err := yaml.Marshal(written)
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &list); err != nil {
		t.Fatal(err)
	}
	for _, condition := range list {
		condition.(map[string]any)["observedGeneration"] = int64(3)
	}
	return list
}

// kstatusOf returns how Flux and other users of kstatus read the status.
func kstatusOf(t *testing.T, object recordedStatus) status.Status {
	t.Helper()
	metadata := map[string]any{"name": "main", "generation": int64(3)}
	if strings.HasPrefix(object.Status["state"].(string), "Deleti") {
		metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	}
	got, err := status.Compute(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "shop.example.com/v1alpha1", "kind": "Shop", "metadata": metadata, "status": object.Status,
	}})
	if err != nil {
		t.Fatal(err)
	}
	return got.Status
}

// wantedKstatus is the contract: a component is Current exactly if it is Ready, and Failed exactly if it is Stalled.
func wantedKstatus(v Verdict) status.Status {
	switch {
	case v.State == v1alpha1.StateDeleting, v.State == v1alpha1.StateDeletionPending:
		return status.TerminatingStatus
	case v.Ready == metav1.ConditionTrue:
		return status.CurrentStatus
	case v.Stalled:
		return status.FailedStatus
	default:
		return status.InProgressStatus
	}
}

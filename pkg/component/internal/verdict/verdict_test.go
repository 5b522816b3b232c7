// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"flag"
	"fmt"
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
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// outcome is a verdict as users and the controller see it.
type outcome struct {
	State   v1alpha1.State
	Ready   metav1.ConditionStatus
	Other   string // Reconciling, Stalled or nothing
	Reason  string
	Message string
	Returns ctrl.Result
	Err     bool
}

const (
	testRequeue  = 10 * time.Minute
	testRetry    = 2 * time.Minute
	testFallback = 400 * time.Millisecond
)

func TestVerdict(t *testing.T) {
	const (
		unknown, falsy, truthy = metav1.ConditionUnknown, metav1.ConditionFalse, metav1.ConditionTrue
		reconciling, stalled   = v1alpha1.ConditionReconciling, v1alpha1.ConditionStalled
	)
	after := func(d time.Duration) ctrl.Result { return ctrl.Result{RequeueAfter: d} }
	plain := errors.New("the server said no")
	busy := func(seconds int) error { return apierrors.NewTooManyRequests("later", seconds) }
	retriable := func(delay *time.Duration) error { return types.NewRetriableError(plain, delay) }
	invalid := &reconciler.InvalidError{Err: errors.New("ConfigMap shop/a: twice")}
	retriableJoined := errors.Join(types.NewRetriableError(errors.Join(plain, invalid), new(7*time.Second)))
	conflict := &reconciler.OwnerConflictError{Object: "ConfigMap shop/a", Message: "belongs to Helm release shop/web"}

	tests := []struct {
		name  string
		facts Facts
		want  outcome
	}{
		{"rolled back", Facts{RolledBack: "revision 2 failed"},
			outcome{v1alpha1.StateError, falsy, stalled, vocabulary.ReasonRolledBack, "revision 2 failed", after(testRequeue), false}},
		{"a revision without approval", Facts{Held: Held{Reason: vocabulary.ReasonApprovalRequired, Message: "revision 2 waits"}},
			outcome{v1alpha1.StatePending, unknown, reconciling, vocabulary.ReasonApprovalRequired, "revision 2 waits", after(testRequeue), false}},
		{"first reconcile", Facts{FirstSeen: true},
			outcome{v1alpha1.StatePending, unknown, reconciling, "FirstSeen", "the component was seen for the first time", after(result.RequeueDelay), false}},
		{"suspended: nothing until it changes", Facts{Skipped: "suspended"},
			outcome{v1alpha1.StateSuspended, unknown, "", "Suspended", "suspended", after(0), false}},
		{"looked at again", Facts{Skipped: "the management policy of the component is skip", SkippedFor: testRequeue},
			outcome{v1alpha1.StateSuspended, unknown, "", "Suspended", "the management policy of the component is skip", after(testRequeue), false}},
		{"waiting for dependents", Facts{Waiting: "Deployment shop/api: 1 of 3", Fallback: testFallback},
			outcome{v1alpha1.StateProcessing, unknown, reconciling, "Processing", "Deployment shop/api: 1 of 3", after(testFallback), false}},
		{"waiting after the timeout", Facts{Waiting: "Deployment shop/api: 1 of 3", TimedOut: true, Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "Timeout", "not ready after 5m0s: Deployment shop/api: 1 of 3", after(testFallback), false}},
		{"waiting for what has failed", Facts{Waiting: "Job shop/migrate: BackoffLimitExceeded", Failed: true, Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "ObjectFailed", "Job shop/migrate: BackoffLimitExceeded", after(testFallback), false}},
		{"waiting after the timeout for what has failed", Facts{Waiting: "Job shop/migrate: BackoffLimitExceeded", Failed: true, TimedOut: true, Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "Timeout", "not ready after 5m0s: Job shop/migrate: BackoffLimitExceeded", after(testFallback), false}},
		{"retriable error with a delay", Facts{Err: retriable(new(7 * time.Second))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "the server said no", after(7 * time.Second), false}},
		{"retriable error without a delay takes the retry interval", Facts{Err: fmt.Errorf("generator: %w", retriable(nil))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "generator: the server said no", after(testRetry), false}},
		{"retriable error in deletion", Facts{Deleting: true, Err: retriable(nil)},
			outcome{v1alpha1.StateDeletionPending, unknown, reconciling, "DeletionRetrying", "the server said no", after(testRetry), false}},
		{"a short delay is a second", Facts{Err: retriable(new(time.Millisecond))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "the server said no", after(time.Second), false}},
		{"a negative delay is none", Facts{Err: retriable(new(-time.Hour))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "the server said no", after(testRetry), false}},
		{"a delay of a hundred years is a day", Facts{Err: retriable(new(100 * 365 * 24 * time.Hour))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "the server said no", after(24 * time.Hour), false}},
		{"a retriable error counts whatever it wraps", Facts{Err: retriableJoined},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "the server said no; ConfigMap shop/a: twice", after(7 * time.Second), false}},
		{"a server that has too much to do is no error", Facts{Err: fmt.Errorf("create ConfigMap shop/a: %w", busy(7))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "create ConfigMap shop/a: later", after(7 * time.Second), false}},
		{"nor is one that refuses all objects", Facts{Err: errors.Join(busy(7), busy(7))},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "later; later", after(7 * time.Second), false}},
		{"it names no delay", Facts{Err: busy(0)},
			outcome{v1alpha1.StatePending, unknown, reconciling, "Retrying", "later", after(time.Second), false}},
		{"it has too much to do, and another object is wrong", Facts{Err: errors.Join(busy(7), plain)},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "later; the server said no", after(0), true}},
		{"waiting error keeps its reason", Facts{Err: result.NewWaiting(plain, "QuotaExceeded", time.Second)},
			outcome{v1alpha1.StatePending, unknown, reconciling, "QuotaExceeded", "the server said no", after(time.Second), false}},
		{"stalling error", Facts{Err: result.NewStalling(plain, vocabulary.ReasonCRDOutdated)},
			outcome{v1alpha1.StateError, falsy, stalled, "CRDOutdated", "the server said no", after(testRequeue), false}},
		{"invalid manifests", Facts{Err: fmt.Errorf("apply: %w", invalid)},
			outcome{v1alpha1.StateError, falsy, stalled, "Invalid", "apply: ConfigMap shop/a: twice", after(testRequeue), false}},
		{"invalid component", Facts{Err: &InvalidError{errors.New("Widget shop/main: no")}},
			outcome{v1alpha1.StateError, falsy, stalled, "SpecInvalid", "Widget shop/main: no", after(testRequeue), false}},
		{"owner conflict", Facts{Err: errors.Join(conflict)},
			outcome{v1alpha1.StateError, falsy, stalled, "OwnerConflict", "ConfigMap shop/a: belongs to Helm release shop/web", after(testRequeue), false}},
		{"owner conflict while others are under way", Facts{Err: errors.Join(conflict), Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, stalled, "OwnerConflict", "ConfigMap shop/a: belongs to Helm release shop/web", after(testFallback), false}},
		{"another target", Facts{Err: &reconciler.TargetChangedError{Recorded: "a", Actual: "b"}},
			outcome{v1alpha1.StateError, falsy, stalled, "TargetChanged", "the dependent objects live in the cluster a, but the target is the cluster b; point the target back to where they live", after(testRequeue), false}},
		{"an ordinary error beside an owner conflict is not slowed down", Facts{Err: errors.Join(conflict, plain)},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "ConfigMap shop/a: belongs to Helm release shop/web; the server said no", after(0), true}},
		{"a forbidden write", Facts{Err: fmt.Errorf("create: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", plain)), Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "Forbidden", `create: pods "a" is forbidden: the server said no`, after(testFallback), false}},
		{"a forbidden read in deletion", Facts{Deleting: true, Err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}, Fallback: testFallback},
			outcome{v1alpha1.StateDeleting, falsy, reconciling, "Forbidden", "ConfigMap shop/a: no", after(testFallback), false}},
		{"a forbidden read beside an owner conflict", Facts{Err: errors.Join(conflict, &reconciler.ForbiddenError{Object: "ConfigMap shop/b", Message: "no"}), Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "Forbidden", "ConfigMap shop/a: belongs to Helm release shop/web; ConfigMap shop/b: no", after(testFallback), false}},
		{"an ordinary error beside a forbidden read is not slowed down", Facts{Err: errors.Join(plain, &reconciler.ForbiddenError{Object: "ConfigMap shop/b", Message: "no"}), Fallback: testFallback},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "the server said no; ConfigMap shop/b: no", after(0), true}},
		{"other error", Facts{Err: plain},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"other error in deletion", Facts{Deleting: true, Err: plain},
			outcome{v1alpha1.StateDeleting, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"an ignored error is none to ignore here", Facts{Err: &result.Generic{Ignore: true, Err: plain}},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"several errors become one line", Facts{Err: errors.Join(plain, errors.New("again"))},
			outcome{v1alpha1.StateError, falsy, reconciling, "Error", "the server said no; again", after(0), true}},
		{"done", Facts{Done: "2 of 2 dependent objects are ready"},
			outcome{v1alpha1.StateReady, truthy, "", "Ready", "2 of 2 dependent objects are ready", after(testRequeue), false}},
		{"deletion blocked", Facts{Deleting: true, Blocked: "CustomResourceDefinition foos: 2 instances", Fallback: testFallback},
			outcome{v1alpha1.StateDeleting, falsy, reconciling, "DeletionBlocked", "CustomResourceDefinition foos: 2 instances", after(testFallback), false}},
		{"deletion in progress", Facts{Deleting: true, Waiting: "Namespace shop: terminating", Fallback: testFallback},
			outcome{v1alpha1.StateDeleting, falsy, reconciling, "DeletionProcessing", "Namespace shop: terminating", after(testFallback), false}},
		{"deletion in progress has no timeout", Facts{Deleting: true, Waiting: "Namespace shop: terminating", TimedOut: true, Fallback: testFallback},
			outcome{v1alpha1.StateDeleting, falsy, reconciling, "DeletionProcessing", "Namespace shop: terminating", after(testFallback), false}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.facts.Intervals = Intervals{Requeue: testRequeue, Retry: testRetry, Timeout: 5 * time.Minute}
			if diff := cmp.Diff(test.want, evaluate(t, test.facts)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// evaluate writes the verdict into the conditions of an object, and returns what it says.
func evaluate(t *testing.T, f Facts) outcome {
	t.Helper()
	var written []metav1.Condition
	setter := conditions.For(&metav1.PartialObjectMetadata{}, &written)
	v := Evaluate(f)
	v.SetConditions(setter)
	conditionstest.Check(t, setter)

	got := outcome{State: v.State, Ready: v.Ready, Reason: v.Reason, Message: v.Message, Returns: ctrl.Result{RequeueAfter: v.After}, Err: v.Err != nil}
	for _, condition := range written {
		if condition.Type != v1alpha1.ConditionReady {
			got.Other = condition.Type
		}
		if condition.Reason != v.Reason || condition.Message != v.Message {
			t.Errorf("condition %s says %s: %q", condition.Type, condition.Reason, condition.Message)
		}
	}
	return got
}

func TestARegularReconcileIsEarlyNotLate(t *testing.T) {
	for _, random := range []float64{0, 0.5, 1} {
		f := Facts{Intervals: Intervals{Requeue: testRequeue}, Random: random}
		if got := Evaluate(f).After; got > testRequeue || got < testRequeue*9/10 {
			t.Errorf("random %v: comes after %s", random, got)
		}
	}
}

// waitFor makes the wait of an engine; text is "group/Kind namespace/name".
func waitFor(text, reason, message string) report.Wait {
	wait := report.Wait{Reason: report.WaitReason(reason), Message: message}
	group, rest, _ := strings.Cut(text, "/")
	kind, name, _ := strings.Cut(rest, " ")
	wait.Key.Group, wait.Key.Kind, wait.Key.Name = group, kind, name
	if namespace, name, ok := strings.Cut(name, "/"); ok {
		wait.Key.Namespace, wait.Key.Name = namespace, name
	}
	return wait
}

func TestWaitingMessage(t *testing.T) {
	api := waitFor("apps/Deployment shop/api", "NotReady", "1 of 3 replicas ready")
	web := waitFor("apps/Deployment shop/web", "NotReady", "0 of 1 replicas ready")
	job := waitFor("batch/Job shop/migrate", "ObjectFailed", "failed:\n  BackoffLimitExceeded")
	later := waitFor("/ConfigMap shop/later", "Order", "waits for Job shop/migrate")
	gone := waitFor("/Namespace old", "Terminating", "")
	tests := []struct {
		name   string
		waits  []report.Wait
		causes map[string]string
		want   string
	}{
		{"one object", []report.Wait{api}, nil, "Deployment shop/api: 1 of 3 replicas ready"},
		{"with what its pods say", []report.Wait{api}, map[string]string{"apps/Deployment shop/api": "pod api-x: ImagePullBackOff"},
			"Deployment shop/api: 1 of 3 replicas ready; pod api-x: ImagePullBackOff"},
		{"without a message", []report.Wait{gone}, nil, "Namespace old"},
		{"what explains most comes first", []report.Wait{later, gone, web, job}, nil,
			"Job shop/migrate: failed: BackoffLimitExceeded; Deployment shop/web: 0 of 1 replicas ready; Namespace old; and 1 more"},
		{"three objects and how many more", []report.Wait{api, web, job, later, gone, later}, nil,
			"Job shop/migrate: failed: BackoffLimitExceeded; Deployment shop/api: 1 of 3 replicas ready; Deployment shop/web: 0 of 1 replicas ready; and 3 more"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := WaitingMessage(test.waits, test.causes); got != test.want {
				t.Errorf("got  %q\nwant %q", got, test.want)
			}
		})
	}
}

func TestMessagesAreBounded(t *testing.T) {
	long := waitFor("apps/Deployment shop/"+strings.Repeat("n", 253), "NotReady", strings.Repeat("ä", 5000))
	message := WaitingMessage([]report.Wait{long, long, long, long, long}, nil)
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 2 more") || strings.ToValidUTF8(message, "") != message {
		t.Errorf("%d bytes: %q", len(message), message)
	}
	blocker := report.Blocker{Dependent: "CustomResourceDefinition foos.example.com", Message: strings.Repeat("x", 5000)}
	message = BlockersMessage([]report.Blocker{blocker, blocker, blocker, blocker})
	if len(message) > conditions.MaxMessage || !strings.HasSuffix(message, "; and 1 more") {
		t.Errorf("%d bytes: %q", len(message), message)
	}
}

func TestStillMoving(t *testing.T) {
	conflict := waitFor("/ConfigMap a", "OwnerConflict", "")
	later := waitFor("/ConfigMap b", "Order", "")
	if StillMoving([]report.Wait{conflict, later}) {
		t.Error("a conflict and what waits for it do not move")
	}
	if !StillMoving([]report.Wait{conflict, later, waitFor("/Pod c", "NotReady", "")}) {
		t.Error("a pod that is not ready yet moves")
	}
}

func TestTheSameFailureKeepsItsMessage(t *testing.T) {
	tests := []struct {
		name, before, message string
		same                  bool
	}{
		{"another source port", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:40000->127.0.0.1:6443: connection reset", true},
		{"another server", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:38412->127.0.0.1:7443: connection reset", false},
		{"another request", "denied (request 7d444840-9dc0-11d1-b245-5ffdce74fad2)", "denied (request 4f3c1a20-9dc0-11d1-b245-5ffdce74fad2)", true},
		{"another trace", "denied, trace 4bf92f3577b34da6", "denied, trace 00f067aa0ba902b7", true},
		{"another time", "at 2026-01-02T03:04:05Z: no", "at 2026-01-02T03:05:05.123Z: no", true},
		{"another duration", "gave up after 30.001s", "gave up after 29.8s", true},
		{"other numbers", "exceeded quota: used 3, limited 5", "exceeded quota: used 4, limited 5", false},
		{"another object", "ConfigMap shop/a: denied", "ConfigMap shop/b: denied", false},
		{"words of hexadecimal letters", "facade defaced", "defaced facade", false},
		{"nothing before", "", "failed", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.message
			if test.same {
				want = test.before
			}
			if got := Steady(test.before, test.message, varying); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

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
		vocabulary.ReasonFirstSeen:          {FirstSeen: true},
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
var documentedReason = regexp.MustCompile(`(?m)^### (\w+)\n\n[^#]*?- Conditions: (.*); state (.*)\n`)

// TestStatusesAreAsDocumented compares the status for each reason with the reference, with the reading of
// kstatus, and with the recorded file.
func TestStatusesAreAsDocumented(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/reference/reasons.md")
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

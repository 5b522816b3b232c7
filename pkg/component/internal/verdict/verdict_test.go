// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/api/v1alpha1"
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
		{"first reconcile", Facts{Claimed: true},
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
		f := Facts{Intervals: Intervals{Requeue: testRequeue}, Random: func() float64 { return random }}
		if got := Evaluate(f).After; got > testRequeue || got < testRequeue*9/10 {
			t.Errorf("random %v: comes after %s", random, got)
		}
	}
}

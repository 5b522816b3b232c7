// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

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
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// judged is a verdict as users and the controller see it.
type judged struct {
	State   State
	Ready   metav1.ConditionStatus
	Other   string // Reconciling, Stalled or nothing
	Reason  string
	Message string
	Returns ctrl.Result
	Err     bool
}

const (
	testRequeue = 10 * time.Minute
	testRetry   = 2 * time.Minute
	testNet     = 400 * time.Millisecond
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
		facts facts
		want  judged
	}{
		{"first seen", facts{claimed: true},
			judged{StatePending, unknown, reconciling, "FirstSeen", "the component was seen for the first time", after(result.RequeueDelay), false}},
		{"suspended: nothing until it changes", facts{skipped: skippedBySpec},
			judged{StatePending, unknown, "", "Suspended", "suspended", after(0), false}},
		{"policy skip: looked at again", facts{skipped: skippedByPolicy},
			judged{StatePending, unknown, "", "Suspended", "the management policy of the component is skip", after(testRequeue), false}},
		{"waiting for dependents", facts{waiting: "Deployment shop/api: 1 of 3", net: testNet},
			judged{StateProcessing, unknown, reconciling, "Processing", "Deployment shop/api: 1 of 3", after(testNet), false}},
		{"waiting after the timeout", facts{waiting: "Deployment shop/api: 1 of 3", timedOut: true, net: testNet},
			judged{StateError, falsy, reconciling, "Timeout", "not ready after 5m0s: Deployment shop/api: 1 of 3", after(testNet), false}},
		{"waiting for what has failed", facts{waiting: "Job shop/migrate: BackoffLimitExceeded", failed: true, net: testNet},
			judged{StateError, falsy, reconciling, "ObjectFailed", "Job shop/migrate: BackoffLimitExceeded", after(testNet), false}},
		{"waiting after the timeout for what has failed", facts{waiting: "Job shop/migrate: BackoffLimitExceeded", failed: true, timedOut: true, net: testNet},
			judged{StateError, falsy, reconciling, "Timeout", "not ready after 5m0s: Job shop/migrate: BackoffLimitExceeded", after(testNet), false}},
		{"retriable error with a delay", facts{err: retriable(new(7 * time.Second))},
			judged{StatePending, unknown, reconciling, "Retrying", "the server said no", after(7 * time.Second), false}},
		{"retriable error without a delay takes the retry interval", facts{err: fmt.Errorf("generator: %w", retriable(nil))},
			judged{StatePending, unknown, reconciling, "Retrying", "generator: the server said no", after(testRetry), false}},
		{"retriable error in deletion", facts{deleting: true, err: retriable(nil)},
			judged{StateDeletionPending, unknown, reconciling, "DeletionRetrying", "the server said no", after(testRetry), false}},
		{"a short delay is a second", facts{err: retriable(new(time.Millisecond))},
			judged{StatePending, unknown, reconciling, "Retrying", "the server said no", after(time.Second), false}},
		{"a negative delay is none", facts{err: retriable(new(-time.Hour))},
			judged{StatePending, unknown, reconciling, "Retrying", "the server said no", after(testRetry), false}},
		{"a delay of a hundred years is a day", facts{err: retriable(new(100 * 365 * 24 * time.Hour))},
			judged{StatePending, unknown, reconciling, "Retrying", "the server said no", after(24 * time.Hour), false}},
		{"a retriable error counts whatever it wraps", facts{err: retriableJoined},
			judged{StatePending, unknown, reconciling, "Retrying", "the server said no; ConfigMap shop/a: twice", after(7 * time.Second), false}},
		{"waiting error keeps its reason", facts{err: result.NewWaiting(plain, "QuotaExceeded", time.Second)},
			judged{StatePending, unknown, reconciling, "QuotaExceeded", "the server said no", after(time.Second), false}},
		{"stalling error", facts{err: result.NewStalling(plain, v1alpha1.ReasonCRDOutdated)},
			judged{StateError, falsy, stalled, "CRDOutdated", "the server said no", after(testRequeue), false}},
		{"invalid manifests", facts{err: fmt.Errorf("apply: %w", invalid)},
			judged{StateError, falsy, stalled, "Invalid", "apply: ConfigMap shop/a: twice", after(testRequeue), false}},
		{"invalid component", facts{err: &invalidError{errors.New("Widget shop/main: no")}},
			judged{StateError, falsy, stalled, "SpecInvalid", "Widget shop/main: no", after(testRequeue), false}},
		{"owner conflict", facts{err: errors.Join(conflict)},
			judged{StateError, falsy, stalled, "OwnerConflict", "ConfigMap shop/a: belongs to Helm release shop/web", after(testRequeue), false}},
		{"owner conflict while others are under way", facts{err: errors.Join(conflict), net: testNet},
			judged{StateError, falsy, stalled, "OwnerConflict", "ConfigMap shop/a: belongs to Helm release shop/web", after(testNet), false}},
		{"another target", facts{err: &reconciler.TargetChangedError{Recorded: "a", Actual: "b"}},
			judged{StateError, falsy, stalled, "TargetChanged", "the dependent objects live in the cluster a, but the target is the cluster b; point the target back to where they live", after(testRequeue), false}},
		{"an ordinary error beside an owner conflict is not slowed down", facts{err: errors.Join(conflict, plain)},
			judged{StateError, falsy, reconciling, "Error", "ConfigMap shop/a: belongs to Helm release shop/web; the server said no", after(0), true}},
		{"a forbidden write", facts{err: fmt.Errorf("create: %w", apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "a", plain)), net: testNet},
			judged{StateError, falsy, reconciling, "Forbidden", `create: pods "a" is forbidden: the server said no`, after(testNet), false}},
		{"a forbidden read in deletion", facts{deleting: true, err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}, net: testNet},
			judged{StateError, falsy, reconciling, "Forbidden", "ConfigMap shop/a: no", after(testNet), false}},
		{"a forbidden read beside an owner conflict", facts{err: errors.Join(conflict, &reconciler.ForbiddenError{Object: "ConfigMap shop/b", Message: "no"}), net: testNet},
			judged{StateError, falsy, reconciling, "Forbidden", "ConfigMap shop/a: belongs to Helm release shop/web; ConfigMap shop/b: no", after(testNet), false}},
		{"an ordinary error beside a forbidden read is not slowed down", facts{err: errors.Join(plain, &reconciler.ForbiddenError{Object: "ConfigMap shop/b", Message: "no"}), net: testNet},
			judged{StateError, falsy, reconciling, "Error", "the server said no; ConfigMap shop/b: no", after(0), true}},
		{"other error", facts{err: plain},
			judged{StateError, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"other error in deletion", facts{deleting: true, err: plain},
			judged{StateError, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"an ignored error is none to ignore here", facts{err: &result.Generic{Ignore: true, Err: plain}},
			judged{StateError, falsy, reconciling, "Error", "the server said no", after(0), true}},
		{"several errors become one line", facts{err: errors.Join(plain, errors.New("again"))},
			judged{StateError, falsy, reconciling, "Error", "the server said no; again", after(0), true}},
		{"done", facts{done: "2 of 2 dependent objects are ready"},
			judged{StateReady, truthy, "", "Ready", "2 of 2 dependent objects are ready", after(testRequeue), false}},
		{"deletion blocked", facts{deleting: true, blocked: "CustomResourceDefinition foos: 2 instances", net: testNet},
			judged{StateDeleting, falsy, reconciling, "DeletionBlocked", "CustomResourceDefinition foos: 2 instances", after(testNet), false}},
		{"deletion in progress", facts{deleting: true, waiting: "Namespace shop: terminating", net: testNet},
			judged{StateDeleting, falsy, reconciling, "DeletionProcessing", "Namespace shop: terminating", after(testNet), false}},
		{"deletion in progress has no timeout", facts{deleting: true, waiting: "Namespace shop: terminating", timedOut: true, net: testNet},
			judged{StateDeleting, falsy, reconciling, "DeletionProcessing", "Namespace shop: terminating", after(testNet), false}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.facts.intervals = intervals{requeue: testRequeue, retry: testRetry, timeout: 5 * time.Minute}
			if diff := cmp.Diff(test.want, seen(t, test.facts)); diff != "" {
				t.Errorf("verdict (-want +got):\n%s", diff)
			}
		})
	}
}

// seen writes the verdict into a component as the handler does, and computes what
// is returned as the lifecycle does.
func seen(t *testing.T, f facts) judged {
	t.Helper()
	obj := newWidget()
	v := judge(f)
	(&handler[*widget]{}).write(obj, v, time.Unix(1000, 0))
	conditionstest.Check(t, conditionsOf(obj))

	got := judged{State: v.state, Ready: v.ready, Reason: v.reason, Message: v.message, Returns: ctrl.Result{RequeueAfter: v.after}, Err: v.err != nil}
	for _, condition := range obj.GetStatus().Conditions {
		if condition.Type != v1alpha1.ConditionReady {
			got.Other = condition.Type
		}
		if condition.Reason != v.reason || condition.Message != v.message {
			t.Errorf("condition %s says %s: %q", condition.Type, condition.Reason, condition.Message)
		}
	}
	return got
}

func TestARegularReconcileComesEarlyNotLate(t *testing.T) {
	for _, random := range []float64{0, 0.5, 1} {
		f := facts{intervals: intervals{requeue: testRequeue}, random: func() float64 { return random }}
		if got := judge(f).after; got > testRequeue || got < testRequeue*9/10 {
			t.Errorf("random %v: comes after %s", random, got)
		}
	}
}

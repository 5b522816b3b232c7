// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/steps"
)

// Reconciler makes a bucket exactly once.
type Reconciler struct {
	client.Client
	cloud *cloud
}

// Reconcile makes the bucket, unless that is done.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	bucket := &Bucket{}
	if err := r.Get(ctx, request.NamespacedName, bucket); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	lock := steps.NewLock(bucket, r.Client, "Bucket", steps.WithHolder("uid-of-the-pod"))
	if lock.Condition().Status == steps.ConditionCreated {
		return ctrl.Result{}, nil
	}
	err := lock.ExecuteContext(ctx, func(_ context.Context, step steps.Condition) (steps.Condition, error) {
		bucket.Status.BucketName = r.cloud.create(lock.IdempotencyKey(step))
		step.Status, step.Reason = steps.ConditionCreated, "Bucket created"
		return step, nil
	})
	verdict := result.Compute(result.Success, err, nil) // a lock that is held is a wait, and no failure
	return verdict.Result, verdict.Err
}

// A bucket is made exactly once, however often its object is reconciled.
func Example() {
	ctx := context.Background()
	server := newServer(stored())
	reconciler := &Reconciler{Client: server, cloud: newCloud()}
	for range 3 {
		if _, err := reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: key}); err != nil {
			fmt.Println(err)
		}
	}
	bucket := &Bucket{}
	if err := server.Get(ctx, key, bucket); err != nil {
		fmt.Println(err)
	}
	step := bucket.Status.Steps.FindType("Bucket")
	fmt.Println(bucket.Status.BucketName, step.Status, step.Reason, reconciler.cloud.calls["create"])
	// Output: b-1 Created Bucket created 1
}

// The state of a step is a condition that is found, changed and set again.
func ExampleConditions_SetCondition() {
	var list steps.Conditions
	step := list.FindOrInitializeFor("Bucket")
	fmt.Println(step.Status, len(list))

	step.Status = steps.ConditionCreated
	step.Reason = "Item Created, waiting until it becomes available"
	if err := list.SetCondition(step); err != nil {
		fmt.Println(err)
	}
	fmt.Println(list.TypeHasStatus("Bucket", steps.ConditionCreated), list.AnyWithStatus(steps.ConditionError))
	fmt.Println(list.SetCondition(steps.Condition{Type: "not a type", Status: "X"}))
	// Output:
	// Initialized 0
	// true false
	// condition "not a type": its type must be letters, digits, '-', '_' and '.', after a domain and a slash if need be, such as example.com/Bucket
}

// A task that fails leaves its error in the condition.
func ExampleLock_Execute() {
	ctx := context.Background()
	server := newServer(stored())
	bucket := &Bucket{}
	if err := server.Get(ctx, key, bucket); err != nil {
		fmt.Println(err)
	}
	lock := steps.NewLock(bucket, server, "Bucket")
	err := lock.Execute(ctx, func(step steps.Condition) (steps.Condition, error) {
		return step, errors.New("the quota is used up")
	})
	step := bucket.Status.Steps.FindType("Bucket")
	fmt.Println(err)
	fmt.Println(step.Status, step.Reason)
	// Output:
	// the quota is used up
	// Error the quota is used up
}

// The steps serve a summary, too.
func ExampleConditions_ToMeta() {
	list := steps.Conditions{{Type: "Bucket", Status: steps.ConditionCompleted, Reason: "it is there"}, {Type: "Access", Status: steps.ConditionError, Reason: "no such role"}}
	for _, condition := range list.ToMeta(1) {
		fmt.Println(condition.Type, condition.Status, condition.Reason, condition.Message)
	}
	// Output:
	// Bucket True Completed it is there
	// Access False Error no such role
}

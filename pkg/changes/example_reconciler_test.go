// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/changes"
)

var errBusy = errors.New("the other system is busy")

// IsRetryable reports whether the other system will answer later.
func IsRetryable(err error) bool { return errors.Is(err, errBusy) }

// InfoClient is a client of the other system, which is a map here.
type InfoClient struct {
	infos map[string]string
	err   error
}

// ApplyInfo sends the information about an object.
func (c *InfoClient) ApplyInfo(namespace, name, someInfo, otherInfo string) error {
	if c.err != nil {
		return c.err
	}
	c.infos[namespace+"/"+name] = someInfo + " " + otherInfo
	return nil
}

// Delete deletes it.
func (c *InfoClient) Delete(namespace, name string) error {
	delete(c.infos, namespace+"/"+name)
	return c.err
}

// NewMyKindReconciler returns a reconciler that sends the spec to another system,
// whenever it changed.
func NewMyKindReconciler(infoClient *InfoClient, store client.Client) changes.Reconciler {
	return &changes.TypedReconciler[*MyKind]{
		ReconcileFunc: func(ctx context.Context, req changes.TypedReconcileRequest[*MyKind]) (changes.ReconcileResult, error) {
			logf.FromContext(ctx).Info("Reconcile request", "name", req.Object.GetName(), "action", changes.ResourceActionFromReconcile(req.Action), "generation", req.Object.GetGeneration())
			if req.Action == changes.ReconcileActionDeleted {
				err := infoClient.Delete(req.Object.GetNamespace(), req.Object.GetName())
				return changes.ReconcileResult{}, err
			}
			if req.Object.GetGeneration() == req.Object.Status.LastAppliedGeneration {
				return changes.ReconcileResult{}, nil // the current spec was sent
			}
			err := infoClient.ApplyInfo(req.Object.GetNamespace(), req.Object.GetName(), req.Object.Spec.SomeInfo, req.Object.Spec.OtherInfo)
			if err != nil {
				if IsRetryable(err) {
					return changes.ReconcileResult{
						RequeueAfter: time.Minute,
					}, nil
				}
				return changes.ReconcileResult{}, err // the RetryPolicy decides
			}
			req.Object.Status.LastAppliedGeneration = req.Object.GetGeneration()
			return changes.ReconcileResult{}, store.Status().Update(ctx, req.Object)
		},
	}
}

// A reconciler has one function for all actions, and keeps in the status what it did.
func ExampleTypedReconciler() {
	ctx := context.Background()
	obj := &MyKind{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1}, Spec: MyKindSpec{SomeInfo: "some", OtherInfo: "other"}}
	store, info := newStore(obj), &InfoClient{infos: map[string]string{}, err: errBusy}
	reconciler := NewMyKindReconciler(info, store)

	call := func(action changes.ReconcileAction) {
		current := &MyKind{}
		if err := store.Get(ctx, client.ObjectKeyFromObject(obj), current); err != nil {
			fmt.Println(err)
		}
		result, err := reconciler.Reconcile(ctx, changes.ReconcileRequest{Action: action, Object: current})
		fmt.Println(action, result.RequeueAfter, err, info.infos, current.Status.LastAppliedGeneration)
	}
	call(changes.ReconcileActionCreated)
	info.err = nil
	call(changes.ReconcileActionCreated)
	call(changes.ReconcileActionDeleted)
	// Output:
	// Created 1m0s <nil> map[] 0
	// Created 0s <nil> map[ns/a:some other] 1
	// Deleted 0s <nil> map[] 1
}

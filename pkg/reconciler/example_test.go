// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// A program without a component of its own: it keeps the record where it likes.
func ExampleReconciler_Apply() {
	apply := func(ctx context.Context, config *rest.Config, inventory v1alpha1.Inventory, save func(context.Context, v1alpha1.Inventory) error) error {
		target, err := reconciler.NewTarget(config)
		if err != nil {
			return err
		}
		engine, err := reconciler.NewReconciler("release.example.com", target, reconciler.ReconcilerOptions{})
		if err != nil {
			return err
		}
		for {
			outcome, err := engine.Apply(ctx, reconciler.ApplyRequest{
				Owner:     reconciler.Owner{Group: "example.com", Kind: "Release", Namespace: "shop", Name: "main"},
				Namespace: "shop",
				Objects: []client.Object{&corev1.ConfigMap{
					ObjectMeta: metav1.ObjectMeta{Name: "settings"},
					Data:       map[string]string{"greeting": "Welcome"},
				}},
				Inventory: inventory,
				Record:    save,
			})
			inventory = outcome.Inventory // keep it, whatever happened
			if err := save(ctx, inventory); err != nil {
				return err
			}
			if err != nil || outcome.Done() {
				return err
			}
			time.Sleep(time.Second)
		}
	}
	fmt.Printf("%T\n", apply)
	// Output: func(context.Context, *rest.Config, v1alpha1.Inventory, func(context.Context, v1alpha1.Inventory) error) error
}

func ExampleNewReconciler() {
	_, err := reconciler.NewReconciler("Not a DNS name", reconciler.Target{}, reconciler.ReconcilerOptions{
		UpdatePolicy: new(reconciler.UpdatePolicy("Overwrite")),
		Parallelism:  -1,
	})
	fmt.Println(err != nil)
	// Output: true
}

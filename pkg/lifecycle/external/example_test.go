// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
)

// shelf is an API on which everything has a place.
type shelf map[string]int64

func (s shelf) Observe(_ context.Context, v *vault) (external.Observation, error) {
	size, exists := s[v.Status.External.Token]
	return external.Observation{Exists: exists, UpToDate: size == v.Spec.Size}, nil
}

func (s shelf) Create(_ context.Context, v *vault) (external.Operation, error) {
	s[v.Status.External.Token] = v.Spec.Size
	return external.Operation{Name: "shelf"}, nil
}

func (s shelf) Update(_ context.Context, v *vault) (external.Operation, error) {
	s[v.Status.External.Token] = v.Spec.Size
	return external.Operation{}, nil
}

func (s shelf) Delete(_ context.Context, v *vault) (external.Operation, error) {
	delete(s, v.Status.External.Token)
	return external.Operation{}, nil
}

func Example() {
	ctx := context.Background()
	v := &vault{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a"}, Spec: vaultSpec{Size: 5}}
	server := fake.NewClientBuilder().WithScheme(vaultScheme()).WithStatusSubresource(v).WithObjects(v).Build()
	api := shelf{}
	// With a manager: lifecycle.SetupWithManager(manager, external.New(api, ...), ...).
	loop, err := lifecycle.NewReconciler(external.New(api, external.Options{}), lifecycle.Options[*vault]{Name: "vaults.example.com", Client: server})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := reconcile.Request{NamespacedName: client.ObjectKeyFromObject(v)}

	_, err = loop.Reconcile(ctx, request)
	fmt.Println(len(api), err)
	if err := server.Get(ctx, request.NamespacedName, v); err != nil {
		fmt.Println(err)
	}
	fmt.Println(v.Status.External.Phase, v.Status.External.Name, v.Finalizers, v.Status.Conditions[0].Reason)

	if err := server.Delete(ctx, v); err != nil {
		fmt.Println(err)
	}
	_, err = loop.Reconcile(ctx, request)
	fmt.Println(len(api), err)
	// Output:
	// 1 <nil>
	// Created shelf [vaults.example.com/finalizer] Ready
	// 0 <nil>
}

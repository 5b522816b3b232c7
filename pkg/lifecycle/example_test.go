// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/widget"
)

// pumps stands for something outside the cluster.
type pumps map[string]int64

func (pumps) Claim(context.Context, *widget.Widget) error { return nil }

func (p pumps) CreateOrUpdate(ctx context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
	w.Status.Record = []widget.Item{{Name: w.Name}}
	if err := commit(ctx); err != nil { // on record before it exists
		return result.Empty, err
	}
	p[w.Name] = w.Spec.Size
	return result.Success, nil
}

func (p pumps) Delete(_ context.Context, w *widget.Widget, _ lifecycle.Commit) (result.Result, error) {
	delete(p, w.Name)
	return result.Success, nil
}

func (pumps) UpdateStatus(context.Context, *widget.Widget) error { return nil }

func Example() {
	ctx := context.Background()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "a", Generation: 1}, Spec: widget.Spec{Size: 5}}
	server := widget.NewServer(w)
	world := pumps{}
	loop, err := lifecycle.NewReconciler(world, lifecycle.Options[*widget.Widget]{
		Client: server, Finalizer: "test.corbel.run/pump",
		Jitter: -1, // an example must print the same every time
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	request := reconcile.Request{NamespacedName: key}

	out, err := loop.Reconcile(ctx, request)
	fmt.Println(world, out.RequeueAfter, err)

	if err := server.Delete(ctx, w); err != nil {
		fmt.Println(err)
	}
	out, err = loop.Reconcile(ctx, request)
	fmt.Println(world, out.RequeueAfter, err)
	fmt.Println(server.Get(ctx, key, w))
	// Output:
	// map[a:5] 10m0s <nil>
	// map[] 0s <nil>
	// widgets.test.corbel.run "a" not found
}

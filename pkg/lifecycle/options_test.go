// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/widget"
)

// of is a handler for any kind of object.
type of[T client.Object] struct{}

func (of[T]) Claim(context.Context, T) error        { return nil }
func (of[T]) UpdateStatus(context.Context, T) error { return nil }
func (of[T]) CreateOrUpdate(context.Context, T, lifecycle.Commit) (result.Result, error) {
	return result.Success, nil
}
func (of[T]) Delete(context.Context, T, lifecycle.Commit) (result.Result, error) {
	return result.Success, nil
}

func TestWiringMistakesAreErrors(t *testing.T) {
	type options = lifecycle.Options[*widget.Widget]
	server := widget.NewServer()
	with := func(handler lifecycle.Handler[*widget.Widget], o options) error {
		return check.ErrorOf(lifecycle.NewReconciler(handler, o))
	}
	// mistaken adds what is right of the options.
	mistaken := func(o options) func() error {
		o.Client, o.Finalizer = server, finalizer
		return func() error { return with(&handler{}, o) }
	}
	for _, tc := range []struct {
		name string
		do   func() error
		want []string
	}{
		{"no handler", func() error { return with(nil, options{Client: server, Finalizer: finalizer}) }, []string{"the handler is nil"}},
		{"a nil handler", func() error { return with((*handler)(nil), options{Client: server, Finalizer: finalizer}) }, []string{"the handler is nil"}},
		{"no client", func() error { return with(&handler{}, options{Finalizer: finalizer}) }, []string{"option Client is missing"}},
		{"no finalizer", func() error { return with(&handler{}, options{Client: server}) }, []string{"no valid finalizer"}},
		{"an illegal finalizer", func() error {
			return with(&handler{}, options{Client: server, Finalizer: "a b"})
		}, []string{`no valid finalizer: "a b"`}},
		{"everything at once", func() error { return with(nil, options{}) }, []string{"the handler is nil", "Client is missing", "no valid finalizer"}},
		{"a negative interval", mistaken(options{RequeueInterval: -1}), []string{"RequeueInterval is negative"}},
		{"an illegal name", mistaken(options{Name: "A b"}), []string{`option Name "A b"`}},
		{"an unknown policy", mistaken(options{ManagementPolicy: "Never"}), []string{`option ManagementPolicy: "Never"`}},
		{"an illegal namespace", mistaken(options{Name: name, OperatorNamespace: "a.b"}), []string{`option OperatorNamespace "a.b"`}},
		{"a namespace without a name", mistaken(options{OperatorNamespace: "one"}), []string{"option Name is missing"}},
		{"namespaces without a name", mistaken(options{Namespaces: &namespaces{}}), []string{"need it"}},
		{"no conditions", func() error {
			return check.ErrorOf(lifecycle.NewReconciler(of[*corev1.ConfigMap]{}, lifecycle.Options[*corev1.ConfigMap]{Client: server, Finalizer: finalizer}))
		}, []string{"option Conditions is missing"}},
		{"an interface as type", func() error {
			return check.ErrorOf(lifecycle.NewReconciler(of[client.Object]{}, lifecycle.Options[client.Object]{Client: server, Finalizer: finalizer}))
		}, []string{"option New is missing"}},
		{"a type that the scheme does not know", func() error {
			return check.ErrorOf(lifecycle.NewReconciler(of[*corev1.ConfigMap]{}, lifecycle.Options[*corev1.ConfigMap]{
				Client: server, Finalizer: finalizer, Conditions: func(c *corev1.ConfigMap) conditions.Setter { return conditions.For(c, nil) },
			}))
		}, []string{"no kind"}},
		{"no manager", func() error { return lifecycle.SetupWithManager(nil, &handler{}, options{}) }, []string{"the manager is nil"}},
		{"no manager and no builder", func() error {
			return lifecycle.SetupWithManagerAndBuilder(nil, nil, &handler{}, options{})
		}, []string{"the manager or the builder is nil"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			err := tc.do()
			check.Fails(t, err, tc.want...)
		})
	}
	if err := with(&handler{}, options{Client: server, Finalizer: "my-operator"}); err != nil {
		t.Errorf("a finalizer without a slash: %v", err)
	}
}

func TestTheSpecBelongsToTheUser(t *testing.T) {
	h := &handler{apply: func(_ context.Context, w *widget.Widget, commit lifecycle.Commit) (result.Result, error) {
		w.Spec.Size = 7
		w.Spec.Loaded = "from elsewhere"
		w.Status.Phase = "Working"
		if err := commit(t.Context()); err != nil {
			return result.Empty, err
		}
		if w.Spec.Size != 7 || w.Spec.Loaded != "from elsewhere" {
			t.Errorf("after the Commit the spec is %+v", w.Spec)
		}
		return result.Success, nil
	}}
	b := newBench(t, h, claimed)
	b.mustReconcile()
	if size := b.read().Spec.Size; size != 0 {
		t.Errorf("size %d was written", size)
	}
	b.options.PersistSpec = true
	b.rebuild(h)
	b.mustReconcile()
	if size := b.read().Spec.Size; size != 7 {
		t.Errorf("size %d although it was asked for", size)
	}
}

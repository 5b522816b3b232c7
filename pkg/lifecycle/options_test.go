// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/widget"
)

func TestWiringMistakesAreErrors(t *testing.T) {
	type options = lifecycle.Options[*widget.Widget]
	server := widget.NewServer()
	for _, tc := range []struct {
		name    string
		handler lifecycle.Handler[*widget.Widget]
		options options
		want    []string
	}{
		{"no handler", nil, options{Client: server, Finalizer: finalizer}, []string{"the handler is nil"}},
		{"a nil handler", (*handler)(nil), options{Client: server, Finalizer: finalizer}, []string{"the handler is nil"}},
		{"no client", &handler{}, options{Finalizer: finalizer}, []string{"option Client is missing"}},
		{"no finalizer", &handler{}, options{Client: server}, []string{"no valid finalizer"}},
		{"an illegal finalizer", &handler{}, options{Client: server, Finalizer: "a b"}, []string{`no valid finalizer: "a b"`}},
		{"a negative interval", &handler{}, options{Client: server, Finalizer: finalizer, RequeueInterval: -1}, []string{"RequeueInterval is negative"}},
		{"everything at once", nil, options{}, []string{"the handler is nil", "Client is missing", "no valid finalizer"}},
	} {
		_, err := lifecycle.NewReconciler(tc.handler, tc.options)
		for _, want := range tc.want {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: want an error that says %q, got %v", tc.name, want, err)
			}
		}
	}
	if _, err := lifecycle.NewReconciler(&handler{}, options{Client: server, Finalizer: "my-operator"}); err != nil {
		t.Errorf("a finalizer without a slash: %v", err)
	}
}

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

func TestTypesMustBeUsable(t *testing.T) {
	server := widget.NewServer()
	for want, err := range map[string]error{
		"option Conditions is missing": second(lifecycle.NewReconciler(of[*corev1.ConfigMap]{}, lifecycle.Options[*corev1.ConfigMap]{Client: server, Finalizer: finalizer})),
		"option New is missing":        second(lifecycle.NewReconciler(of[client.Object]{}, lifecycle.Options[client.Object]{Client: server, Finalizer: finalizer})),
		"no kind": second(lifecycle.NewReconciler(of[*corev1.ConfigMap]{}, lifecycle.Options[*corev1.ConfigMap]{
			Client: server, Finalizer: finalizer, Conditions: func(c *corev1.ConfigMap) conditions.Setter { return conditions.For(c, nil) },
		})),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error that says %q, got %v", want, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }

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
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if size := b.read().Spec.Size; size != 0 {
		t.Errorf("size %d was written", size)
	}
	b.options.PersistSpec = true
	b.rebuild(h)
	if _, err := b.reconcile(); err != nil {
		t.Fatal(err)
	}
	if size := b.read().Spec.Size; size != 7 {
		t.Errorf("size %d although it was asked for", size)
	}
}

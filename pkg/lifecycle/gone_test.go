// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
)

// unreadable answers every read with an error, as long as it has one.
type unreadable struct {
	client.Reader
	err error
}

func (u *unreadable) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if u.err == nil {
		return u.Reader.Get(ctx, key, obj, options...)
	}
	return u.err
}

func TestOnlyAnAnswerThatNamesTheObjectEndsItsReconciles(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "shops"}
	tests := []struct {
		name string
		err  error
		want bool
		// quiet: it is not an error of the reconcile, though it is not the end.
		quiet bool
	}{
		{"the server names the object", apierrors.NewNotFound(resource, key.Name), true, true},
		{"also in another error", fmt.Errorf("read: %w", apierrors.NewNotFound(resource, key.Name)), true, true},
		{"it names another object", apierrors.NewNotFound(resource, "other"), false, true},
		// The client fills in the name that it asked for.
		{"the path is not served", apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, key.Name, "404 page not found", 0, true), false, true},
		{"another error", errors.New("no route"), false, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, &handler{}, nil)
			b.options.Reader = &unreadable{err: test.err}
			b.rebuild(b.handler)
			out, err := b.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if finished := slices.Contains(b.handler.calls, "ForgetObject"); finished != test.want || (err == nil) != test.quiet {
				t.Errorf("finished: %v, error: %v", finished, err)
			}
			if comes := err != nil || out.RequeueAfter > 0; comes == test.want {
				t.Errorf("comes again: %v", comes)
			}
		})
	}
}

// The definition of the type may have been deleted, with all its objects.
func TestATypeThatIsNotServedIsAskedForLessAndLessOften(t *testing.T) {
	b := newBench(t, &handler{}, nil)
	down := &unreadable{Reader: b.server, err: apierrors.NewGenericServerResponse(http.StatusNotFound, "get",
		schema.GroupResource{Resource: "widgets"}, key.Name, "404 page not found", 0, true)}
	b.options.Reader = down
	b.rebuild(b.handler)
	waits := func(reconciles int) (waits []time.Duration) {
		for range reconciles {
			out, err := b.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			check.NoError(t, err)
			waits = append(waits, out.RequeueAfter/time.Second)
		}
		return waits
	}
	check.EqualNamed(t, "seconds between reconciles", []time.Duration{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600, 600}, waits(12))
	proof := down.err
	down.err = nil
	if waits(1); b.read() == nil || len(b.read().Finalizers) == 0 {
		t.Error("nothing was done for the object when its type was served again")
	}
	down.err = proof
	check.EqualNamed(t, "seconds after it was served", []time.Duration{1}, waits(1))
}

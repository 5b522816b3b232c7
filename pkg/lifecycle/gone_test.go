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

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// unreadable answers every read with an error.
type unreadable struct {
	client.Reader
	err error
}

func (u unreadable) Get(context.Context, client.ObjectKey, client.Object, ...client.GetOption) error {
	return u.err
}

func TestOnlyAnAnswerThatNamesTheObjectEndsThePassesOverIt(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "shops"}
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"the server names the object", apierrors.NewNotFound(resource, key.Name), true},
		{"also in another error", fmt.Errorf("read: %w", apierrors.NewNotFound(resource, key.Name)), true},
		{"it names another object", apierrors.NewNotFound(resource, "other"), false},
		// The client fills in the name that it asked for.
		{"the path is not served", apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, key.Name, "404 page not found", 0, true), false},
		{"another error", errors.New("no route"), false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBench(t, &handler{}, nil)
			b.options.Reader = unreadable{err: test.err}
			b.rebuild(b.handler)
			_, err := b.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: key})
			if finished := slices.Contains(b.handler.calls, "Finished"); finished != test.want || (err == nil) != test.want {
				t.Errorf("finished: %v, error: %v", finished, err)
			}
		})
	}
}

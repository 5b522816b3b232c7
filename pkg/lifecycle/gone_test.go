// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

func TestOnlyANamedObjectIsGone(t *testing.T) {
	resource := schema.GroupResource{Group: "example.com", Resource: "shops"}
	tests := []struct {
		name string
		err  error
		want bool
	}{
		{"the server names the object", apierrors.NewNotFound(resource, "main"), true},
		{"also in another error", fmt.Errorf("read: %w", apierrors.NewNotFound(resource, "main")), true},
		{"it names another object", apierrors.NewNotFound(resource, "other"), false},
		{"the path is not served", apierrors.NewGenericServerResponse(http.StatusNotFound, "GET", resource, "", "404 page not found", 0, true), false},
		{"another error", errors.New("no route"), false},
		{"no error", nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := isGone(test.err, client.ObjectKey{Namespace: "shop", Name: "main"}); got != test.want {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

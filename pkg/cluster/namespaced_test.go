// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/corbel-run/corbel/pkg/cluster"
)

func TestTypesForWhichNobodyWaitedAreNotUnreadable(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"slow.example.com","versions":[{"groupVersion":"slow.example.com/v1","version":"v1"}]}]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`,
	}
	target := serve(t, cluster.Options{}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, known := answers[r.URL.Path]
		if !known { // the types of the slow group
			cancel()
			<-r.Context().Done()
			return
		}
		_, _ = io.WriteString(w, answer)
	})
	readable, unreadable, err := target.Types().Namespaced(ctx)
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, %v", readable, unreadable, err)
	}
}

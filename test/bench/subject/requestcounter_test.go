// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRequestsAreCountedByVerbAndResource(t *testing.T) {
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()
	counter := newRequestCounter()
	transport := counter.Wrap(http.DefaultTransport)
	for _, request := range []struct{ method, path string }{
		{"GET", "/api"},
		{"GET", "/apis/apps/v1"},
		{"GET", "/api/v1/namespaces/shop"},
		{"GET", "/api/v1/namespaces/shop/configmaps"},
		{"GET", "/api/v1/namespaces/shop/configmaps/a"},
		{"GET", "/api/v1/configmaps?watch=1"},
		{"GET", "/apis/apps/v1/deployments?watch=true&limit=1"},
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/a/status"},
		{"PATCH", "/apis/apps/v1/namespaces/shop/deployments/a?dryRun=All"},
		{"POST", "/apis/events.k8s.io/v1/namespaces/shop/events"},
		{"PUT", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/a"},
		{"DELETE", "/apis/apps/v1/namespaces/shop/deployments/a"},
	} {
		r, err := http.NewRequestWithContext(t.Context(), request.method, server.URL+request.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := transport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		if err := response.Body.Close(); err != nil {
			t.Error(err)
		}
	}
	want := Traffic{
		Requests: map[string]int{
			"DISCOVERY": 2, "GET namespaces": 1, "LIST configmaps": 1, "GET configmaps": 1,
			"PATCH deployments/status": 1, "DRYRUN deployments": 1, "DELETE deployments": 1,
		},
		Watches: 2, Events: 1, Leases: 1,
	}
	got := counter.drain()
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the traffic (-want +got):\n%s", diff)
	}
	if got.Total() != 8 || got.Writes() != 2 {
		t.Errorf("%d requests and %d writes, want 8 and 2", got.Total(), got.Writes())
	}
	if _, quiet := counter.Quiet(); !quiet || counter.drain().Total() != 0 {
		t.Error("a request is still under way, or was counted twice")
	}
}

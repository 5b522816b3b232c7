// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"

	"k8s.io/client-go/rest"
)

func itoa(n int) string { return strconv.Itoa(n) }

// fake returns the configuration of a server that knows ConfigMaps and gives
// every other request to the handler: for answers that a real one rarely gives.
func fake(t *testing.T, handler http.HandlerFunc) *rest.Config {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("GET /api/v1", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["create","delete","get","list","patch","update"]},
			{"name":"secrets","kind":"Secret","namespaced":true,"verbs":["create","delete","get","list","patch","update"]}]}`))
	})
	mux.HandleFunc("/", handler)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return &rest.Config{Host: server.URL}
}

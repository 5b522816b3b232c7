// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

// A 404 proves that an object is absent only if the answer names the object.
func Example() {
	// Something that answers, but is no Kubernetes API server.
	server := httptest.NewServer(http.NotFoundHandler())
	defer server.Close()

	target, err := cluster.New(&rest.Config{Host: server.URL}, cluster.Options{UserAgent: "shop-operator"})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer target.Close()

	configMaps := cluster.Resource{
		GVR:        schema.GroupVersionResource{Version: "v1", Resource: "configmaps"},
		Kind:       "ConfigMap",
		Namespaced: true,
	}
	_, err = target.Objects().Get(context.Background(), configMaps, "shop", "settings")
	fmt.Println("an error:", err != nil)
	fmt.Println("absent:", cluster.IsNotFound(err, configMaps, "settings"))
	// Output:
	// an error: true
	// absent: false
}

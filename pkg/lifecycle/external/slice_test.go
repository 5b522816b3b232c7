// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// inSlice tells whether a case of an enumeration is run, like the function of the
// same name in test/e2e: one in N, by CORBEL_SLICE=1/N and CORBEL_SLICE_OFFSET.
func inSlice(t *testing.T, index int) bool {
	t.Helper()
	n, offset := 8, 0
	if slice := os.Getenv("CORBEL_SLICE"); slice != "" {
		if _, err := fmt.Sscanf(slice, "1/%d", &n); err != nil || n < 1 {
			t.Fatalf("CORBEL_SLICE=%s: must have the form 1/N", slice)
		}
	}
	if text := os.Getenv("CORBEL_SLICE_OFFSET"); text != "" {
		var err error
		if offset, err = strconv.Atoi(text); err != nil {
			t.Fatalf("CORBEL_SLICE_OFFSET=%s: must be a number", text)
		}
	}
	return (index+index/n+offset)%n == 0
}

var mappers struct {
	sync.Mutex
	mapper apimeta.RESTMapper
}

// mapperOnce is the mapper of all clients: what is learned about types is learned once,
// and no request for it is part of a story.
func mapperOnce(t *testing.T, cfg *rest.Config) apimeta.RESTMapper {
	t.Helper()
	mappers.Lock()
	defer mappers.Unlock()
	if mappers.mapper == nil {
		httpClient, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if mappers.mapper, err = apiutil.NewDynamicRESTMapper(cfg, httpClient); err != nil {
			t.Fatal(err)
		}
	}
	return mappers.mapper
}

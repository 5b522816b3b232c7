// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"net/http"
	"net/http/httptest"
	"testing"

	corev1 "k8s.io/api/core/v1"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
)

func TestLogsAreThoseOfTheAnnotation(t *testing.T) {
	pod := testPod(corev1.RestartPolicyAlways, "web:1", "log", "first\nsecond")
	pod.Namespace, pod.Name = "shop", "web"
	store := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := store.Add(pod); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		path, want string
		code       int
	}{
		{"/containerLogs/shop/web/c0", "first\nsecond\n", http.StatusOK},
		{"/containerLogs/shop/web/c0?tailLines=1&previous=true", "second\n", http.StatusOK},
		{"/containerLogs/shop/web/c0?tailLines=0", "", http.StatusOK},
		{"/containerLogs/shop/other/c0", "pod \"other\" not found\n", http.StatusNotFound},
	} {
		answer := httptest.NewRecorder()
		logs(corelisters.NewPodLister(store)).ServeHTTP(answer, httptest.NewRequest(http.MethodGet, test.path, nil))
		if answer.Code != test.code || answer.Body.String() != test.want {
			t.Errorf("GET %s: %d: %q, want %q", test.path, answer.Code, answer.Body.String(), test.want)
		}
	}
}

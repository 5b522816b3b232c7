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

func TestContainersEndForTheReasonOfTheAnnotation(t *testing.T) {
	pod := testPod(corev1.RestartPolicyNever, "web:1", "exit-code", "137", "reason", "OOMKilled")
	status, _ := nextStatus(pod, testTiming, testBound, testBound.Add(testTiming.start+testTiming.run), testIPs)
	if ended := status.ContainerStatuses[0].State.Terminated; ended == nil || ended.Reason != "OOMKilled" || ended.ExitCode != 137 {
		t.Errorf("the container is %+v", status.ContainerStatuses[0].State)
	}
	pod = testPod(corev1.RestartPolicyAlways, "web:1", "waiting", crashLoop, "exit-code", "137", "reason", "OOMKilled")
	status, _ = nextStatus(pod, testTiming, testBound, testBound.Add(testTiming.start), testIPs)
	if last := status.ContainerStatuses[0].LastTerminationState.Terminated; last == nil || last.Reason != "OOMKilled" || last.ExitCode != 137 {
		t.Errorf("the container was %+v", status.ContainerStatuses[0].LastTerminationState)
	}
	pod = testPod(corev1.RestartPolicyAlways, "web:1", "waiting", "CreateContainerConfigError", "message", `secret "x" not found`)
	status, _ = nextStatus(pod, testTiming, testBound, testBound.Add(testTiming.start), testIPs)
	if state := status.ContainerStatuses[0].State.Waiting; state == nil || state.Message != `secret "x" not found` {
		t.Errorf("the container is %+v", status.ContainerStatuses[0].State)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package podsim

import (
	"fmt"
	"runtime"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/version"
)

// nodeAddress is from a range that is reserved for documentation, so that nothing
// answers there.
func nodeAddress(index int) string { return fmt.Sprintf("192.0.2.%d", 1+index%250) }

// newNode is Ready from the beginning, and so large that no test fills it.
// The name of the host is an address, because the API server connects to it for logs, at the port.
func newNode(index int, name string, port int32, now time.Time) *corev1.Node {
	capacity := corev1.ResourceList{
		corev1.ResourceCPU:              resource.MustParse("256"),
		corev1.ResourceMemory:           resource.MustParse("1Ti"),
		corev1.ResourceEphemeralStorage: resource.MustParse("10Ti"),
		corev1.ResourcePods:             resource.MustParse("2000"),
	}
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: name,
			Labels: map[string]string{
				corev1.LabelHostname:           name,
				corev1.LabelOSStable:           "linux",
				corev1.LabelArchStable:         runtime.GOARCH,
				corev1.LabelInstanceTypeStable: "podsim",
				corev1.LabelTopologyRegion:     "podsim",
				corev1.LabelTopologyZone:       fmt.Sprintf("zone-%d", index),
			},
		},
		Spec: corev1.NodeSpec{ProviderID: "podsim://" + name},
		Status: corev1.NodeStatus{
			Capacity:    capacity,
			Allocatable: capacity,
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: nodeAddress(index)},
				{Type: corev1.NodeHostName, Address: "127.0.0.1"},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: port}},
			Conditions:      nodeConditions(now),
			NodeInfo: corev1.NodeSystemInfo{
				KubeletVersion:          version.Get().GitVersion,
				ContainerRuntimeVersion: "podsim://1.0.0",
				OSImage:                 "Pod simulator",
				OperatingSystem:         "linux",
				Architecture:            runtime.GOARCH,
			},
		},
	}
}

func nodeConditions(now time.Time) []corev1.NodeCondition {
	at := metav1.NewTime(now)
	conditions := []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady",
		Message: "the pod simulator is ready", LastHeartbeatTime: at, LastTransitionTime: at,
	}}
	for _, pressure := range []corev1.NodeConditionType{
		corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure,
	} {
		conditions = append(conditions, corev1.NodeCondition{
			Type: pressure, Status: corev1.ConditionFalse, Reason: "NothingIsRun",
			LastHeartbeatTime: at, LastTransitionTime: at,
		})
	}
	return conditions
}

func nodeReady(node *corev1.Node) bool {
	return slices.ContainsFunc(node.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"runtime"
	"strconv"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// configMap is a dependent as a server sends it, of one of a hundred owners.
func configMap(i, version int) *unstructured.Unstructured {
	owner := fmt.Sprintf("%022d", i%100)
	live := &unstructured.Unstructured{}
	text := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"config-map-of-a-shop-%d","namespace":"namespace-%d",
		"uid":"3f9c4c1e-0000-4000-8000-%012d","resourceVersion":"%d","creationTimestamp":"2026-11-22T02:00:00Z",
		"labels":{%q:%q,"app.kubernetes.io/name":"shop","app.kubernetes.io/part-of":"shop"},
		"annotations":{"corbel.example.com/owner":"shop.example.com/Shop/namespace-%d/shop/uid-of-the-owner-%d"}},
		"data":{"text":"%0100d"}}`, i, i%10, i, version, label, owner, i%10, i%100, version)
	if err := live.UnmarshalJSON([]byte(text)); err != nil {
		panic(err)
	}
	return live
}

func reduceConfigMap(live *unstructured.Unstructured) plan.Observation {
	ref, _ := plan.ParseOwnerRef(live.GetAnnotations()["corbel.example.com/owner"])
	return plan.Observation{
		Existence: plan.Present, UID: live.GetUID(), ResourceVersion: live.GetResourceVersion(),
		Ownership:         plan.Ownership{OwnerID: live.GetLabels()[label], Ref: ref},
		ObservedHash:      fmt.Sprintf("%022d", 7*len(live.GetName())+len(live.GetResourceVersion())),
		CreationTimestamp: live.GetCreationTimestamp().Time, Status: plan.Status{Readiness: plan.Ready},
	}
}

var configMaps = cluster.Resource{GVR: pods.GVR.GroupVersion().WithResource("configmaps"), Kind: "ConfigMap", Namespaced: true, Verbs: []string{"list", "watch"}}

// watching is a store with the scope of its only reflector.
func watching() (*Store, *scope) {
	s := newStore(nil, Options{Label: label, Reduce: reduceConfigMap})
	k := newKind(Place{Resource: configMaps}.kind(), configMaps)
	s.kinds[k.key] = k
	c := &scope{store: s, kind: k}
	k.scopes[wide] = c
	return s, c
}

// receive records an event after it was decoded.
func (c *scope) receive(live *unstructured.Unstructured) {
	converted, _ := c.Convert(live)
	c.Set(types.NamespacedName{Namespace: live.GetNamespace(), Name: live.GetName()}, converted, live.GetResourceVersion())
}

// BenchmarkRecord measures what a record costs in memory.
func BenchmarkRecord(b *testing.B) {
	const objects = 20_000
	for b.Loop() {
		before := heap()
		s, c := watching()
		for i := range objects {
			c.receive(configMap(i, 1_000_000+i))
		}
		b.ReportMetric(float64(heap()-before)/objects, "B/record")
		if stats := s.Stats(); stats.Records != objects {
			b.Fatalf("%+v", stats)
		}
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}

// BenchmarkEvent measures an event after it was decoded, without the hashes.
func BenchmarkEvent(b *testing.B) {
	_, c := watching()
	live := configMap(1, 1)
	version := 1_000_000
	b.ReportAllocs()
	for b.Loop() {
		version++
		live.SetResourceVersion(strconv.Itoa(version))
		c.receive(live)
	}
}

// BenchmarkLook measures a look at a record among many.
func BenchmarkLook(b *testing.B) {
	s, c := watching()
	for i := range 20_000 {
		c.receive(configMap(i, 1_000_000+i))
	}
	c.synced = true
	place := Place{Resource: configMaps, Namespace: "namespace-7"}
	b.ReportAllocs()
	for b.Loop() {
		if _, known, _ := s.Look(place, "config-map-of-a-shop-7777"); !known {
			b.Fatal("not known")
		}
	}
}

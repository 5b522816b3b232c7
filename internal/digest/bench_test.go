// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"fmt"
	"testing"
)

// workload is a Deployment as a server answers it, about 3 KiB of JSON.
func workload(b *testing.B) (live, manifest map[string]any) {
	b.Helper()
	const container = `{"name":"c%d","image":"example.com/app:1.2.3","ports":[{"name":"http","containerPort":8080}],"env":[{"name":"A","value":"1"},{"name":"B","value":"2"},{"name":"C","valueFrom":{"secretKeyRef":{"name":"s","key":"k"}}}],"resources":{"limits":{"cpu":"1","memory":"1Gi"},"requests":{"cpu":"100m","memory":"100Mi"}},"volumeMounts":[{"name":"data","mountPath":"/data"},{"name":"tmp","mountPath":"/tmp"}]%s}`
	const object = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"api","namespace":"shop","labels":{"app":"api"},"annotations":{"a":"b"}%s},"spec":{"replicas":3,"selector":{"matchLabels":{"app":"api"}},"template":{"metadata":{"labels":{"app":"api"}},"spec":{"containers":[%s,%s],"volumes":[{"name":"data","emptyDir":{}},{"name":"tmp","emptyDir":{}}]%s}}}%s}`
	const defaults = `,"imagePullPolicy":"IfNotPresent","terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File"`
	manifest = parse(b, fmt.Sprintf(object, "", fmt.Sprintf(container, 1, ""), fmt.Sprintf(container, 2, ""), "", ""))
	live = parse(b, fmt.Sprintf(object, `,"uid":"u","resourceVersion":"1","generation":1,"managedFields":[{"manager":"x"}]`,
		fmt.Sprintf(container, 1, defaults), fmt.Sprintf(container, 2, defaults),
		`,"restartPolicy":"Always","dnsPolicy":"ClusterFirst","schedulerName":"default-scheduler"`, `,"status":{"replicas":3}`))
	return live, manifest
}

func BenchmarkManifest(b *testing.B) {
	_, manifest := workload(b)
	b.ReportAllocs()
	for b.Loop() {
		Hasher{}.Manifest(manifest)
	}
}

func BenchmarkSeal(b *testing.B) {
	h := Hasher{Key: []byte("0123456789abcdef0123456789abcdef")}
	b.ReportAllocs()
	for b.Loop() {
		h.Seal("lllr6ue5bxf7bvwub2bwmeviwxfxt4ka", "", "ConfigMap", "shop", "settings", "0c1a2b3c-0000-4000-8000-123456789abc")
	}
}

func BenchmarkObservedHash(b *testing.B) {
	live, _ := workload(b)
	b.ReportAllocs()
	for b.Loop() {
		Hasher{}.ObservedHash(live)
	}
}

func BenchmarkAccepted(b *testing.B) {
	live, manifest := workload(b)
	b.ReportAllocs()
	for b.Loop() {
		Hasher{}.AppliedHash(live, manifest, nil)
	}
}

func BenchmarkAcceptedLongLists(b *testing.B) {
	for _, n := range []int{1000, 10000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var wanted, live []any
			for i := range n {
				wanted = append(wanted, map[string]any{"name": fmt.Sprint(i)})
				live = append(live, map[string]any{"name": fmt.Sprint(n - i)})
			}
			for b.Loop() {
				Hasher{}.AppliedHash(map[string]any{"l": live}, map[string]any{"l": wanted}, nil)
			}
		})
	}
}

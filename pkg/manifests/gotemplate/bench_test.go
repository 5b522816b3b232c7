// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"fmt"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

// BenchmarkGenerate renders one template with a loop into many objects.
func BenchmarkGenerate(b *testing.B) {
	const template = `{{ range $i := until (int .Values.n) }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: a-{{ $i }}
  labels: {{ dict "app" $.Values.app "index" (printf "i%d" $i) | toJson }}
data:
  v: {{ $.Values.v | quote }}
{{ end }}`
	for _, n := range []int{10, 100, 1000} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			g, err := gotemplate.New(folder(map[string]string{"t/a.yaml": template}), "t", gotemplate.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				objects, err := manifests.Generate(b.Context(), g, "ns", "app", types.UnstructurableMap{"n": n, "app": "shop", "v": i})
				if err != nil || len(objects) != n {
					b.Fatalf("%d objects, %v", len(objects), err)
				}
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"fmt"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// BenchmarkGenerate renders charts with many templates that share a helper.
func BenchmarkGenerate(b *testing.B) {
	const template = `apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ .Release.Name }}-%d
  labels: {{- include "web.labels" . | nindent 4 }}
data:
  v: {{ .Values.v | quote }}
`
	for _, n := range []int{10, 100} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			files := map[string]string{
				"web/values.yaml":            "v: 1\n",
				"web/templates/_helpers.tpl": `{{ define "web.labels" }}app: {{ .Chart.Name }}{{ end }}`,
			}
			for i := range n {
				files[fmt.Sprintf("web/templates/%d.yaml", i)] = fmt.Sprintf(template, i)
			}
			g, err := helm.New(folder(files), "web", helm.Options{})
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				objects, err := manifests.Generate(b.Context(), g, "ns", "app", types.UnstructurableMap{"v": i})
				if err != nil || len(objects) != n {
					b.Fatalf("%d objects, %v", len(objects), err)
				}
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// overlay is a kustomization of n Deployments, with an overlay that changes names,
// labels, images and a field of all of them.
func overlay(n int) map[string]string {
	files := map[string]string{
		"overlay/kustomization.yaml": "resources: [../base]\nnamePrefix: pre-\nlabels: [{pairs: {team: a}, includeSelectors: true}]\nimages: [{name: app, newTag: '2'}]\n" +
			"patches:\n- target: {kind: Deployment}\n  patch: |-\n    - {op: replace, path: /spec/replicas, value: 3}\n",
	}
	resources := ""
	for i := range n {
		resources += fmt.Sprintf("- %d.yaml\n", i)
		files[fmt.Sprintf("base/%d.yaml", i)] = fmt.Sprintf("apiVersion: apps/v1\nkind: Deployment\nmetadata:\n  name: app-%[1]d\nspec:\n  replicas: 1\n"+
			"  selector: {matchLabels: {app: app-%[1]d}}\n  template:\n    metadata: {labels: {app: app-%[1]d}}\n    spec: {containers: [{name: main, image: app}]}\n", i)
	}
	files["base/kustomization.yaml"] = "resources:\n" + resources
	return files
}

// BenchmarkBuild builds a small and a large kustomization as the command kustomize
// does (krusty), with a generator made anew (cold), with one that was there before
// and renders something else every time (warm), and again the same (again).
func BenchmarkBuild(b *testing.B) {
	for _, n := range []int{1, 100} {
		run := func(name string, build func(i int) (int, error)) {
			b.Run(fmt.Sprintf("%d/%s", n, name), func(b *testing.B) {
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if objects, err := build(i); err != nil || objects != n {
						b.Fatalf("%d objects, %v", objects, err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "builds/s")
			})
		}
		disk, fixed, templated := filesys.MakeFsInMemory(), fstest.MapFS{}, fstest.MapFS{}
		for name, text := range overlay(n) {
			fixed[name], templated[name] = &fstest.MapFile{Data: []byte(text)}, &fstest.MapFile{Data: []byte(text)}
			if err := disk.WriteFile("/"+name, []byte(text)); err != nil {
				b.Fatal(err)
			}
		}
		run("krusty", func(int) (int, error) {
			built, err := krusty.MakeKustomizer(krustyOptions()).Run(disk, "/overlay")
			if err != nil {
				return 0, err
			}
			_, err = built.AsYaml()
			return built.Size(), err
		})
		generate := func(g manifests.Generator, i int) (int, error) {
			objects, err := manifests.Generate(b.Context(), g, "ns", "app", types.UnstructurableMap{"i": i})
			return len(objects), err
		}
		run("cold", func(i int) (int, error) {
			g, err := New(fixed, "overlay", Options{})
			if err != nil {
				return 0, err
			}
			return generate(g, i)
		})
		templated["overlay/kustomization.yaml"].Data = append(templated["overlay/kustomization.yaml"].Data, "commonAnnotations: {i: '{{ .Values.i }}'}\n"...)
		g, err := New(templated, "overlay", Options{Templates: &Templates{}})
		if err != nil {
			b.Fatal(err)
		}
		seen := 0
		run("warm", func(int) (int, error) { seen++; return generate(g, seen) })
		if _, err := generate(g, 0); err != nil {
			b.Fatal(err)
		}
		run("again", func(int) (int, error) { return generate(g, 0) })
	}
}

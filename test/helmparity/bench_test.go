// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// usual is what the charts are rendered for.
var usual = setting{kubeVersion: kubeVersion}

// chartOf copies the chart large, with n templates instead of one. Each has four objects, as real charts have them: with helpers, loops and
// conditions.
func chartOf(b *testing.B, n int) string {
	b.Helper()
	folder := copyOf(b, "testdata/charts/large")
	file := filepath.Join(folder, "templates", "all.yaml")
	template, err := os.ReadFile(file)
	check.NoError(b, errors.Join(err, os.Remove(file)))
	for i := range n {
		text := strings.ReplaceAll(string(template), "%s-0", fmt.Sprintf("%%s-%d", i))
		check.NoError(b, os.WriteFile(filepath.Join(folder, "templates", fmt.Sprintf("%d.yaml", i)), []byte(text), 0o600))
	}
	return folder
}

// copyOf copies a chart, so that files can be added to it.
func copyOf(b *testing.B, path string) string {
	b.Helper()
	folder := filepath.Join(b.TempDir(), filepath.Base(path))
	check.NoError(b, os.CopyFS(folder, os.DirFS(path)))
	return folder
}

// BenchmarkRender renders charts of different size for one release after the other:
// as the helm command does it, which reads the chart every time (helm-cold), with one
// that is in memory (helm-warm), with a generator of a chart that was never seen
// (ours-cold), with a new generator of a known chart (ours-new), with the same generator
// (ours-warm), and again for the same release (ours-again). What Helm gives is decoded,
// as it does before it sends it, so that both give objects. CORBEL_HELM_CHARTS names a
// folder with charts to render instead.
func BenchmarkRender(b *testing.B) {
	type chart struct{ name, path string }
	charts := []chart{
		{"1 object", copyOf(b, "testdata/charts/release")}, {"umbrella", copyOf(b, "testdata/charts/umbrella")},
		{"20 objects", chartOf(b, 5)}, {"100 objects", chartOf(b, 25)}, {"400 objects", chartOf(b, 100)},
	}
	if root := os.Getenv("CORBEL_HELM_CHARTS"); root != "" {
		files, err := filepath.Glob(filepath.Join(root, "*", "Chart.yaml"))
		if err != nil || len(files) == 0 {
			b.Fatalf("no charts in the folder that CORBEL_HELM_CHARTS names: %v", err)
		}
		charts = nil
		for _, file := range files {
			charts = append(charts, chart{filepath.Base(filepath.Dir(file)), copyOf(b, filepath.Dir(file))})
		}
	}
	for _, chart := range charts {
		path := chart.path
		run := func(name string, render func(i int) (objects int, err error)) {
			b.Run(chart.name+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				objects, before := 0, cpuTime(b)
				for i := 0; b.Loop(); i++ {
					var err error
					if objects, err = render(i); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "renders/s")
				b.ReportMetric(float64(objects), "objects")
				b.ReportMetric((cpuTime(b)-before).Seconds()*1000/float64(b.N), "cpu-ms/op")
			})
		}
		run("helm-cold", func(i int) (int, error) {
			loaded, err := loadByHelm(path)
			if err != nil {
				return 0, err
			}
			return countedByHelm(renderByHelm(loaded, named(i), map[string]any{}, usual))
		})
		loaded := check.Must(loadByHelm(path))(b)
		run("helm-warm", func(i int) (int, error) {
			return countedByHelm(renderByHelm(loaded, named(i), map[string]any{}, usual))
		})
		seen := 0
		run("ours-cold", func(i int) (int, error) {
			// A file changes, so that the chart is none that is known already.
			seen++
			if err := os.WriteFile(filepath.Join(path, "NUMBER"), []byte(named(seen)), 0o600); err != nil {
				return 0, err
			}
			g, err := generatorOf(path, usual)
			if err != nil {
				return 0, err
			}
			return counted(g, named(i))
		})
		run("ours-new", func(i int) (int, error) {
			g, err := generatorOf(path, usual)
			if err != nil {
				return 0, err
			}
			return counted(g, named(i))
		})
		g := check.Must(generatorOf(path, usual))(b)
		run("ours-warm", func(i int) (int, error) { seen++; return counted(g, named(seen)) })
		run("ours-again", func(int) (int, error) { return counted(g, releaseName) })
	}
}

// cpuTime returns the CPU time of the process, which other processes do not distort.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	check.NoError(b, syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

func named(i int) string { return fmt.Sprint("shop-", i) }

func countedByHelm(rendered *release.Release, err error) (int, error) {
	if err != nil {
		return 0, err
	}
	text := rendered.Manifest
	for _, hook := range rendered.Hooks {
		text += "\n---\n" + hook.Manifest
	}
	objects, err := split(text)
	return len(objects), err
}

func counted(g manifests.Generator, name string) (int, error) {
	ctx := manifests.Context{ReconcilerName: prefix, Revision: 1}.In(context.Background())
	objects, err := manifests.Generate(ctx, g, namespace, name, types.UnstructurableMap{})
	return len(objects), err
}

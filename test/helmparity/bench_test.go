// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helmparity

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/fstest"
	"time"

	release "helm.sh/helm/v4/pkg/release/v1"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// usual is what the charts are rendered for.
var usual = setting{kubeVersion: kubeVersion}

// chartOf writes a chart of n templates with four objects each, as real charts have them:
// Deployments with their Services and so on, with helpers, loops and conditions.
func chartOf(b *testing.B, n int) string {
	b.Helper()
	const helpers = `{{- define "large.name" -}}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 63 | trimSuffix "-" }}{{- end }}
{{- define "large.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end }}
`
	const values = `labels: {team: a, tier: b}
replicas: 2
image: {repository: registry.example.com/app, tag: 1.2.3}
resources: {limits: {cpu: 1, memory: 1Gi}, requests: {cpu: 100m, memory: 128Mi}}
env: {LOG_LEVEL: info, MODE: production, REGION: eu}
ports: [{name: http, port: 80, target: 8080}, {name: metrics, port: 9090, target: 9090}]
probe: {path: /healthz, port: http}
`
	const template = `{{- $name := printf "%%s-%[1]d" (include "large.name" .) }}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ $name }}
  labels: {{- include "large.labels" . | nindent 4 }}
spec:
  replicas: {{ .Values.replicas }}
  selector: {matchLabels: {app.kubernetes.io/component: {{ $name }}}}
  template:
    metadata:
      labels: {{- include "large.labels" . | nindent 8 }}
        app.kubernetes.io/component: {{ $name }}
      annotations: {checksum/config: {{ .Values.env | toYaml | sha256sum }}}
    spec:
      containers:
      - name: main
        image: "{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}"
        env:
        {{- range $key, $value := .Values.env }}
        - {name: {{ $key }}, value: {{ $value | quote }}}
        {{- end }}
        ports:
        {{- range .Values.ports }}
        - {name: {{ .name }}, containerPort: {{ .target }}}
        {{- end }}
        {{- with .Values.probe }}
        readinessProbe: {httpGet: {path: {{ .path }}, port: {{ .port }}}}
        {{- end }}
        resources: {{- toYaml .Values.resources | nindent 10 }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $name }}
  labels: {{- include "large.labels" . | nindent 4 }}
spec:
  selector: {app.kubernetes.io/component: {{ $name }}}
  ports:
  {{- range .Values.ports }}
  - {name: {{ .name }}, port: {{ .port }}, targetPort: {{ .target }}}
  {{- end }}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: {{ $name }}
  labels: {{- include "large.labels" . | nindent 4 }}
data:
  env: {{ tpl (toYaml .Values.env) . | quote }}
---
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ $name }}
  labels: {{- include "large.labels" . | nindent 4 }}
`
	folder := filepath.Join(b.TempDir(), "large")
	files := map[string]string{
		"Chart.yaml": "apiVersion: v2\nname: large\nversion: 1.2.3\nappVersion: '1'\n", "values.yaml": values, "templates/_helpers.tpl": helpers,
	}
	for i := range n {
		files[fmt.Sprintf("templates/%d.yaml", i)] = fmt.Sprintf(template, i)
	}
	for name, text := range files {
		file := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			b.Fatal(err)
		}
	}
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
		{"1 object", "testdata/charts/release"}, {"umbrella", "testdata/charts/umbrella"},
		{"20 objects", chartOf(b, 5)}, {"100 objects", chartOf(b, 25)}, {"400 objects", chartOf(b, 100)},
	}
	if root := os.Getenv("CORBEL_HELM_CHARTS"); root != "" {
		files, err := filepath.Glob(filepath.Join(root, "*", "Chart.yaml"))
		if err != nil || len(files) == 0 {
			b.Fatalf("no charts in the folder that CORBEL_HELM_CHARTS names: %v", err)
		}
		charts = nil
		for _, file := range files {
			charts = append(charts, chart{filepath.Base(filepath.Dir(file)), filepath.Dir(file)})
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
		loaded, err := loadByHelm(path)
		if err != nil {
			b.Fatal(err)
		}
		run("helm-warm", func(i int) (int, error) {
			return countedByHelm(renderByHelm(loaded, named(i), map[string]any{}, usual))
		})
		seen := 0
		run("ours-cold", func(i int) (int, error) {
			// A file more, so that the chart is none that is known already.
			seen++
			fsys := more{FS: os.DirFS(path), others: fstest.MapFS{"NUMBER": {Data: []byte(named(seen))}}}
			g, err := helm.New(fsys, ".", helmOptions(usual))
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
		g, err := generatorOf(path, usual)
		if err != nil {
			b.Fatal(err)
		}
		run("ours-warm", func(i int) (int, error) { seen++; return counted(g, named(seen)) })
		run("ours-again", func(int) (int, error) { return counted(g, releaseName) })
	}
}

// cpuTime returns the CPU time of the process, which other processes do not distort.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
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

// more is a file system with other files in its root.
type more struct {
	fs.FS
	others fstest.MapFS
}

func (m more) Open(name string) (fs.File, error) {
	if _, ok := m.others[name]; ok {
		return m.others.Open(name)
	}
	return m.FS.Open(name)
}

// ReadDir implements fs.ReadDirFS.
func (m more) ReadDir(name string) ([]fs.DirEntry, error) {
	entries, err := fs.ReadDir(m.FS, name)
	if name == "." && err == nil {
		var others []fs.DirEntry
		others, err = m.others.ReadDir(".")
		entries = append(entries, others...)
	}
	return entries, err
}

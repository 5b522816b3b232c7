// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"maps"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// registry is a chart with what charts of registries have: random passwords, a certificate
// authority, a date, and workloads with checksums of the Secrets. PodTemplates stand for the
// workloads, because nothing has to run for them to be ready.
func registry(t *testing.T) manifests.Generator {
	t.Helper()
	const secret = `apiVersion: v1
kind: Secret
metadata: {name: core}
stringData:
  password: {{ randAlphaNum 20 | quote }}
  id: {{ uuidv4 }}
  ca: {{ (genCA "registry" 365).Cert | b64enc }}
  color: {{ .Values.values.color }}
`
	const workload = `apiVersion: v1
kind: PodTemplate
metadata: {name: %}
template:
  metadata:
    annotations:
      checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}
      date: {{ now | date "2006-01-02T15:04:05" | quote }}
  spec: {containers: [{name: main, image: "registry.example.com/%:1"}]}
`
	files := fstest.MapFS{
		"Chart.yaml":            {Data: []byte("apiVersion: v2\nname: registry\nversion: 1.0.0\n")},
		"values.yaml":           {Data: []byte("values: {color: none}\n")},
		"templates/secret.yaml": {Data: []byte(secret)},
	}
	for _, name := range []string{"core", "jobs", "web"} {
		files["templates/"+name+".yaml"] = &fstest.MapFile{Data: []byte(strings.ReplaceAll(workload, "%", name))}
	}
	return must(helm.New(files, ".", helm.Options{}))(t)
}

// password returns the random password that is applied.
func (b *bed) password() string {
	b.Helper()
	secret := &corev1.Secret{}
	b.check(b.client.Get(b.Context(), b.key("core"), secret))
	return string(secret.Data["password"])
}

// TestATenantNeitherReadsNorChangesRandomValues is about a user who may write Secrets and the status in the
// namespace of a component.
func TestATenantNeitherReadsNorChangesRandomValues(t *testing.T) {
	chart := registry(t)
	b := newBed(t, chart, component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"color": "red"}})
	b.until(v1alpha1.StateReady)
	first, status, password := b.kept().Data, b.get().Status, b.password()
	for _, sealed := range first {
		if readable(sealed, password) {
			t.Error("the password can be read")
		}
	}
	b.update(func(w *widget.Widget) { w.Spec.Values["color"] = "blue" })
	b.until(v1alpha1.StateReady)

	tests := []struct {
		name   string
		forge  func(secret *corev1.Secret)
		status func(s *component.Status)
		event  string
	}{
		{name: "a changed byte", event: "revision 2 are made anew", forge: func(secret *corev1.Secret) { secret.Data["r2"][50] ^= 1 }},
		{name: "the values of another revision", event: "revision 2 are made anew", forge: func(secret *corev1.Secret) { secret.Data["r2"] = first["r1"] }},
		{
			name: "another revision with its values", event: "revision 1 are made anew", forge: func(secret *corev1.Secret) { secret.Data = maps.Clone(first) },
			status: func(s *component.Status) {
				s.Revision, s.ProcessingDigest = status.Revision, b.get().Status.ProcessingDigest
			},
		},
		{
			name: "another revision with its values and its digest", forge: func(secret *corev1.Secret) { secret.Data = maps.Clone(first) },
			status: func(s *component.Status) { s.Revision, s.ProcessingDigest = status.Revision, status.ProcessingDigest },
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			secret := b.kept()
			test.forge(secret)
			b.check(b.client.Update(t.Context(), secret))
			if test.status != nil {
				w := b.get()
				test.status(&w.Status.Status)
				b.check(b.client.Status().Update(t.Context(), w))
			}
			b.restart(chart)
			b.forward += 11 * time.Minute
			b.until(v1alpha1.StateReady)
			if got := b.password(); len(got) != 20 || got == password {
				t.Errorf("the password %q is that of the first revision, or none of the chart", got)
			}
			if test.event != "" {
				b.wantEvent("RandomValuesLost", test.event)
			}
			b.restart(chart)
			b.resetRequests()
			b.reconcile()
			if diff := cmp.Diff([]string(nil), without(b.writes(), "widgets", "digest-key")); diff != "" {
				t.Errorf("writes of the next process (-want +got):\n%s", diff)
			}
		})
	}
}

// readable reports whether a text is in the data, or in what it unpacks to.
func readable(data []byte, text string) bool {
	if reader, err := gzip.NewReader(bytes.NewReader(data)); err == nil {
		if unpacked, err := io.ReadAll(reader); err == nil {
			data = append(data, unpacked...)
		}
	}
	return bytes.Contains(data, []byte(text))
}

// passwords is a chart as many are: a Secret keeps its password by a lookup, and a workload has the checksum of
// another rendering of it.
func passwords(t *testing.T) manifests.Generator {
	t.Helper()
	const secret = `{{- $password := randAlphaNum 20 | b64enc }}
{{- with lookup "v1" "Secret" .Release.Namespace "core" }}{{ $password = .data.password }}{{ end }}
apiVersion: v1
kind: Secret
metadata: {name: core}
data: {password: {{ $password }}}
`
	const workload = `apiVersion: v1
kind: PodTemplate
metadata: {name: core}
template:
  metadata:
    annotations:
      checksum/secret: {{ include (print $.Template.BasePath "/secret.yaml") . | sha256sum }}
      color: {{ .Values.values.color }}
  spec: {containers: [{name: main, image: "registry.example.com/core:1"}]}
`
	return must(helm.New(fstest.MapFS{
		"Chart.yaml": {Data: []byte("apiVersion: v2\nname: passwords\nversion: 1.0.0\n")}, "values.yaml": {Data: []byte("values: {color: none}\n")},
		"templates/secret.yaml": {Data: []byte(secret)}, "templates/workload.yaml": {Data: []byte(workload)},
	}, ".", helm.Options{}))(t)
}

func TestWhatWasRandomStaysAlthoughItIsLookedUpLater(t *testing.T) {
	b := newBed(t, passwords(t), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"color": "red"}})
	b.until(v1alpha1.StateReady)
	for _, restart := range []bool{false, true} {
		if restart {
			b.restart(passwords(t))
		}
		b.resetRequests()
		for range 3 {
			b.forward += 11 * time.Minute // the next full reconcile
			if w, _, err := b.reconcile(); !w.Status.IsReady() || err != nil {
				t.Fatalf("state %s, %v", w.Status.State, err)
			}
		}
		// That the values are looked up now is kept once.
		if got := without(b.writes(), "widgets", "digest-key", "main-revisions"); len(got) > 0 {
			t.Errorf("writes (restart: %t): %v", restart, got)
		}
	}
	password := b.password()
	b.setValues(map[string]string{"color": "blue"})
	if b.password() != password {
		t.Error("an upgrade has changed the password, which the chart looks up")
	}
}

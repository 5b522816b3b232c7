// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/wire"
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

// restart replaces the operator by another process with the same chart.
func (b *bed) restart(generator manifests.Generator) {
	b.Helper()
	b.restartWith(generator, component.ReconcilerOptions{})
}

func (b *bed) restartWith(generator manifests.Generator, options component.ReconcilerOptions) {
	b.Helper()
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, generator, options)
	component.SetClock(b.reconciler, func() time.Time { return time.Now().Add(b.forward) })
	b.check(b.reconciler.SetupWithManager(newManager(b.T, b.env, b.user)))
}

// kept returns the Secret with the random values.
func (b *bed) kept() *corev1.Secret {
	b.Helper()
	list := &corev1.SecretList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	for _, secret := range list.Items {
		if string(secret.Type) == operatorName+"/revisions" {
			return &secret
		}
	}
	b.Fatal("no Secret with random values")
	return nil
}

func TestASecretOfRevisionsThatIsMadeAfterItsComponentIsGoneGoes(t *testing.T) {
	var cut atomic.Bool
	lose := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && !cut.Swap(true) {
				return nil, errors.New("the answer is lost")
			}
			return next.RoundTrip(r)
		})
	}
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) { b.manager = newManagerVia(t, b.env, b.user, lose) })
	w := b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	late := b.kept()
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
	b.check(client.IgnoreNotFound(b.client.Delete(t.Context(), late.DeepCopy())))
	late.ResourceVersion, late.UID = "", ""
	b.check(b.client.Create(t.Context(), late))
	for _, after := range []time.Duration{time.Minute, time.Minute} {
		b.forward += after
		must(b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}))(t)
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(late), late); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is left: %v", err)
	}
}

// password returns the random password that is applied.
func (b *bed) password() string {
	b.Helper()
	secret := &corev1.Secret{}
	b.check(b.client.Get(b.Context(), b.key("core"), secret))
	return string(secret.Data["password"])
}

// without returns the writes, sorted, without those that contain one of the texts.
func without(writes []string, texts ...string) []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(writes, func(write string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(write, text) })
	})))
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

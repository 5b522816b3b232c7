// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/wire"
)

// fixedParts are objects with a field that no update can change, by their kinds.
var fixedParts = map[string]string{
	"apps/v1 Deployment": `
spec:
  replicas: 0
  selector: {matchLabels: {shape: '{{ .Values.shape }}'}}
  template:
    metadata: {labels: {shape: '{{ .Values.shape }}'}}
    spec: {containers: [{name: c, image: 'task:1'}]}`,
	"apps/v1 StatefulSet": `
spec:
  replicas: 0
  serviceName: x
  selector: {matchLabels: {app: x}}
  template:
    metadata: {labels: {app: x}}
    spec: {containers: [{name: c, image: 'task:1'}]}
  volumeClaimTemplates:
  - metadata: {name: data}
    spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: '{{ if eq .Values.shape "one" }}1Gi{{ else }}2Gi{{ end }}'}}}`,
	"batch/v1 Job": `
spec:
  completions: 0
  parallelism: 0
  template: {spec: {restartPolicy: Never, containers: [{name: c, image: 'task:{{ .Values.shape }}'}]}}`,
	"v1 Service": `
spec:
  {{ if eq .Values.shape "two" }}clusterIP: None{{ end }}
  ports: [{name: p, port: 80}]`,
	"v1 ConfigMap": `
immutable: true
data: {shape: '{{ .Values.shape }}'}`,
	"v1 Secret": `
type: example.com/{{ .Values.shape }}`,
	"rbac.authorization.k8s.io/v1 RoleBinding": `
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: '{{ .Values.shape }}'}`,
}

// fixedChart renders the object of the kind that the values name, and another one
// that every upgrade can change.
func fixedChart(t *testing.T) *helm.Generator {
	t.Helper()
	files := fstest.MapFS{
		"Chart.yaml":  {Data: []byte("apiVersion: v2\nname: fixed\nversion: 1.0.0\n")},
		"values.yaml": {Data: []byte("shape: one\npolicy: replace\n")},
		"templates/other.yaml": {Data: []byte(
			"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: '{{ .Release.Name }}-other'}\ndata: {shape: '{{ .Values.shape }}'}\n")},
	}
	for kind, content := range fixedParts {
		apiVersion, kind, _ := strings.Cut(kind, " ")
		files["templates/"+kind+".yaml"] = &fstest.MapFile{Data: []byte(fmt.Sprintf("{{ if eq .Values.kind %q }}\napiVersion: %s\nkind: %s\n"+
			"metadata:\n  name: '{{ .Release.Name }}'\n  annotations: {e2e.corbel.run/update-policy: '{{ .Values.policy }}'}%s\n{{ end }}\n", kind, apiVersion, kind, content))}
	}
	g, err := helm.New(files, ".", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnUpgradeThatChangesAnImmutableFieldNamesTheWayOutAndTheWayOutWorks(t *testing.T) {
	f := newFixture(t)
	f.startWith(t, fixedChart(t), nil)
	for part := range fixedParts {
		apiVersion, kind, _ := strings.Cut(part, " ")
		t.Run(kind, func(t *testing.T) {
			gvk := schema.FromAPIVersionAndKind(apiVersion, kind)
			bundle := f.named(strings.ToLower(kind))
			bundle.Spec.Values = map[string]any{"kind": kind}
			if err := f.Create(t.Context(), bundle); err != nil {
				t.Fatal(err)
			}
			f.ready(t, bundle)
			before := f.uid(t, gvk, bundle.Name)

			f.update(t, bundle, map[string]string{"kind": kind, "shape": "two"})
			f.inError(t, bundle, kind+" "+f.namespace+"/"+bundle.Name+": ", "cannot be changed on an existing object", "annotation e2e.corbel.run/update-policy: recreate")
			if now := f.uid(t, gvk, bundle.Name); now != before {
				t.Errorf("the object was replaced by %s", now)
			}
			other := f.dependent(t, schema.FromAPIVersionAndKind("v1", "ConfigMap"), bundle.Name+"-other")
			shape, _, _ := unstructured.NestedString(other.Object, "data", "shape")
			// Access rights come before all else in their wave, so that the rest waits for them.
			if held := kind == "RoleBinding"; (shape == "one") != held {
				t.Errorf("another object is of the shape %s", shape)
			}

			f.update(t, bundle, map[string]string{"kind": kind, "shape": "two", "policy": "recreate"})
			f.ready(t, bundle)
			after := f.uid(t, gvk, bundle.Name)
			if after == before {
				t.Error("the object was not recreated")
			}
			// The annotation can go again.
			f.update(t, bundle, map[string]string{"kind": kind, "shape": "two"})
			f.ready(t, bundle)
			if now := f.uid(t, gvk, bundle.Name); now != after {
				t.Error("the object was recreated once more")
			}
		})
	}
}

func TestAnObjectThatAUserDeletesBecauseAnUpgradeCannotChangeItIsCreatedAgain(t *testing.T) {
	f := newFixture(t)
	f.startWith(t, fixedChart(t), nil)
	deployment := schema.FromAPIVersionAndKind("apps/v1", "Deployment")
	bundle := f.bundle(t, map[string]string{"kind": "Deployment"})
	f.ready(t, bundle)
	f.update(t, bundle, map[string]string{"kind": "Deployment", "shape": "two"})
	f.inError(t, bundle, "Deployment")
	if err := f.Delete(t.Context(), f.dependent(t, deployment, "main"), client.PropagationPolicy("Orphan")); err != nil {
		t.Fatal(err)
	}
	f.ready(t, bundle)
	shape, _, _ := unstructured.NestedString(f.dependent(t, deployment, "main").Object, "spec", "selector", "matchLabels", "shape")
	if shape != "two" {
		t.Errorf("its shape is %q", shape)
	}
}

// moving is a chart with two sub-charts, one of which holds an object.
func moving(t *testing.T, holder string) *helm.Generator {
	t.Helper()
	files := fstest.MapFS{"Chart.yaml": {Data: []byte("apiVersion: v2\nname: moving\nversion: 1.0.0\n")}}
	for _, name := range []string{"left", "right"} {
		files["charts/"+name+"/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n")}
	}
	files["charts/"+holder+"/templates/a.yaml"] = &fstest.MapFile{Data: []byte(
		"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: moved, labels: {helm.sh/chart: '{{ .Chart.Name }}'}}\n")}
	g, err := helm.New(files, ".", helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestAnObjectThatMovesBetweenSubchartsStays(t *testing.T) {
	f := newFixture(t)
	var deletions atomic.Int32
	count := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodDelete {
				deletions.Add(1)
			}
			return next.RoundTrip(r)
		})
	}
	configMap := schema.FromAPIVersionAndKind("v1", "ConfigMap")
	o := f.startWith(t, moving(t, "left"), count)
	bundle := f.bundle(t, nil)
	f.ready(t, bundle)
	before := f.uid(t, configMap, "moved")
	o.stop(t)
	f.startWith(t, moving(t, "right"), count)
	// The generation is that of the other chart, so that its Ready is still there for a while.
	eventually(t, "the other chart to be ready", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if bundle.Status.Revision != 2 || !bundle.Status.IsReady() {
			return fmt.Errorf("revision %d, ready: %t", bundle.Status.Revision, bundle.Status.IsReady())
		}
		return nil
	})
	if holder := f.dependent(t, configMap, "moved").GetLabels()["helm.sh/chart"]; holder != "right" {
		t.Errorf("the object is in the sub-chart %s", holder)
	}
	if after := f.uid(t, configMap, "moved"); after != before || deletions.Load() > 0 {
		t.Errorf("there were %d deletions, and the uid went from %s to %s", deletions.Load(), before, after)
	}
}

// dependent reads an object of the fixture's namespace.
func (f *fixture) dependent(t *testing.T, gvk schema.GroupVersionKind, name string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := f.Get(t.Context(), client.ObjectKey{Namespace: f.namespace, Name: name}, object); err != nil {
		t.Fatal(err)
	}
	return object
}

func (f *fixture) uid(t *testing.T, gvk schema.GroupVersionKind, name string) types.UID {
	t.Helper()
	return f.dependent(t, gvk, name).GetUID()
}

// inError waits until the Bundle is in error in its current generation, and says all
// that.
func (f *fixture) inError(t *testing.T, bundle *Bundle, says ...string) {
	t.Helper()
	eventually(t, "the Bundle to say what is wrong", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		state, reason, message := bundle.GetStatus().GetState()
		for _, text := range says {
			if state != v1alpha1.StateError || bundle.Status.ObservedGeneration != bundle.Generation || !strings.Contains(message, text) {
				return fmt.Errorf("%s (%s): %s; want %q", state, reason, message, text)
			}
		}
		return nil
	})
}

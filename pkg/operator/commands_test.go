// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlconfig "sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// templates make a Deployment, a Secret and a ConfigMap that also has what is secret.
var templates = fstest.MapFS{"all.yaml": {Data: []byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: {{ .Name }}}
spec:
  selector: {matchLabels: {app: a}}
  template:
    metadata: {labels: {app: a}}
    spec:
      initContainers: [{name: prepare, image: "registry.example.com/prepare:1"}]
      containers: [{name: main, image: "registry.example.com/main:{{ .Values.values.tag }}"}, {name: beside, image: "registry.example.com/main:{{ .Values.values.tag }}"}]
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Name }}}
stringData: {password: {{ .Values.values.password }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}}
data: {text: "uses a password"}
`)}}

// templated is an operator with definitions.
func templated() Options[*widget.Widget] {
	o := widgets()
	o.Generator = func() (manifests.Generator, error) { return gotemplate.New(templates, ".", gotemplate.Options{}) }
	o.CRDs = os.DirFS("../component/testdata/crds")
	return o
}

const sample = `
apiVersion: test.corbel.run/v1
kind: Widget
metadata: {namespace: market, name: corner}
spec:
  timeout: 5m
  values: {tag: "2", password: correct-horse}
  images: [{name: registry.example.com/prepare, newTag: "9"}]
`

// execute runs a command of an operator.
func execute(ctx context.Context, o Options[*widget.Widget], in string, args ...string) (string, error) {
	command, out := o.Command(), &bytes.Buffer{}
	command.SetArgs(args)
	command.SetIn(strings.NewReader(in))
	command.SetOut(out)
	command.SetErr(&bytes.Buffer{})
	err := command.ExecuteContext(ctx)
	return out.String(), err
}

func TestNothingOfASecretIsPrinted(t *testing.T) {
	for name, data := range map[string]any{
		"a map": map[string]any{"a": "correct-horse"}, "a map in a map": map[string]any{"a": map[string]any{"b": "correct-horse"}}, "a text": "correct-horse", "a list": []any{"correct-horse"},
	} {
		out := &bytes.Buffer{}
		check.NoError(t, printMasked([]*unstructured.Unstructured{{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "data": data}}}, out))
		if text := out.String(); strings.Contains(text, "correct-horse") || !strings.Contains(text, "***") {
			t.Errorf("%s: got %s", name, text)
		}
	}
}

func TestTheCommandsThatNeedNoCluster(t *testing.T) {
	run := func(want string, args ...string) string {
		t.Helper()
		text, err := execute(t.Context(), templated(), sample, args...)
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%q: error %v, want %q in:\n%s", args, err, want, text)
		}
		return text
	}
	rendered := run("image: registry.example.com/main:2", "render", "-f", "-")
	if strings.Contains(rendered, "correct-horse") || !strings.Contains(rendered, "password: '***'") {
		t.Errorf("a value of a Secret is shown:\n%s", rendered)
	}
	check.SameNamed(t, "two renderings differ", rendered, run("kind: Deployment", "render", "-f", "-"))
	check.SameNamed(t, "the images are", "registry.example.com/main:2\nregistry.example.com/prepare:9\n", run("", "images", "-f", "-"))
	notes := &bytes.Buffer{}
	check.Must(templated().rendered(t.Context(), []string{"-"}, strings.NewReader(sample), notes))(t)
	check.SameNamed(t, "a timeout is no reference: the notes are", "", notes.String())
	run(`apiGroups: ["apps"], resources: ["deployments"]`, "rbac", "-f", "-")
	run(`apiGroups: ["test.corbel.run"], resources: ["widgets"]`, "rbac", "-f", "-", "-n", "widgets-system")
	confined := templated()
	confined.Reconciler.Operator.Namespaced = true
	if text, err := execute(t.Context(), confined, sample, "rbac", "-f", "-"); err != nil || strings.Contains(text, "ClusterRole") {
		t.Errorf("the roles of an operator of one namespace: %v\n%s", err, text)
	}
	run("name: widgets.test.corbel.run", "crd")

	folder := t.TempDir()
	for _, name := range []string{"one", "two"} {
		text := strings.ReplaceAll(sample, "corner", name)
		check.NoError(t, os.WriteFile(filepath.Join(folder, name+".yaml"), []byte(text), 0o600))
	}
	if text := run("name: one", "render", "-f", folder); !strings.Contains(text, "name: two") {
		t.Error("the second component of a folder is not rendered")
	}
	referring := "{apiVersion: test.corbel.run/v1, kind: Widget, metadata: {name: a}, spec: {password: {name: b, key: c}, texts: {d: {name: e, key: f}}, requires: [{apiVersion: v1, kind: ConfigMap, name: f}]}}"
	if text, err := execute(t.Context(), widgets(), referring, "render", "-f", "-"); err != nil || !strings.Contains(text, "kind: ConfigMap") {
		t.Errorf("a spec with references: %v\n%s", err, text)
	}
	for want, in := range map[string]string{
		"this is the operator for":    "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}",
		"there is no component":       "",
		`unknown field "spec.colour"`: strings.Replace(sample, "spec:", "spec:\n  colour: red", 1),
	} {
		if _, err := execute(t.Context(), templated(), in, "render", "-f", "-"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check.Fails(t, check.ErrorOf(execute(t.Context(), widgets(), "", "crd")), "the option CRDs")
}

func TestDefaultsOfTheDefinitionAreAdded(t *testing.T) {
	o := widgets()
	o.CRDs = fstest.MapFS{"a.yaml": {Data: []byte(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.test.corbel.run}
spec:
  group: test.corbel.run
  names: {kind: Widget, plural: widgets}
  versions:
  - name: v1
    schema:
      openAPIV3Schema:
        properties:
          spec:
            default: {}
            properties:
              values: {default: {}, additionalProperties: {type: object, properties: {a: {default: 1}}}, properties: {tag: {default: "7"}}}
              list: {items: {properties: {b: {default: true}}}}
`)}}
	definitions, err := o.definitions()
	if err != nil || len(definitions) != 1 {
		t.Fatalf("%d definitions, error %v", len(definitions), err)
	}
	object := map[string]any{"spec": map[string]any{"list": []any{map[string]any{}, map[string]any{"b": false}}}}
	check.NoError(t, setDefaults(object, definitions[0], widget.GroupVersion.WithKind("Widget")))
	got, err := json.Marshal(object)
	if want := `{"spec":{"list":[{"b":true},{"b":false}],"values":{"tag":"7"}}}`; err != nil || string(got) != want {
		t.Errorf("got %s, error %v, want %s", got, err, want)
	}
}

func TestPlanPrintsWhatTheOperatorWouldDo(t *testing.T) {
	config, c := connect(t)
	kubeconfig := env.Shared(t).Kubeconfig()
	for _, namespace := range []string{"planned", "planned-operator"} {
		check.NoError(t, c.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	}
	o := widgets()
	o.Name = "planned.example.com"
	plan := func(in string, code int, wants ...string) string {
		t.Helper()
		args := append([]string{"plan", "--kubeconfig", kubeconfig, "--exit-code", "-n", "planned"}, strings.Fields(wants[0])...)
		text, err := execute(t.Context(), o, in, args...)
		got, coded := errors.AsType[exitError](err)
		if err != nil && !coded || int(got) != code {
			t.Errorf("%q: exit code %d, error %v, want %d", args, got, err, code)
		}
		for _, want := range wants[1:] {
			t.Run(wants[0], func(t *testing.T) { check.Contains(t, text, want) })
		}
		return text
	}
	manifest := "{apiVersion: test.corbel.run/v1, kind: Widget, metadata: {name: main}}"
	plan(manifest, 2, "-f -", "Widget planned/main: revision 1, operator planned.example.com", "+ ConfigMap  main", "1 write: 1 created. Nothing was written.")
	keys := &corev1.SecretList{}
	check.NoError(t, c.List(t.Context(), keys))
	for _, secret := range keys.Items {
		if strings.Contains(secret.Name, o.Name) {
			t.Errorf("the plan has created Secret %s/%s", secret.Namespace, secret.Name)
		}
	}

	// The operator runs for a while, with its key in a namespace that only the component names.
	running := o
	running.Reconciler.Operator.OperatorNamespace = new("planned-operator")
	manager, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: c.Scheme(), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: ctrlconfig.Controller{SkipNameValidation: new(true)},
	})
	check.NoError(t, err)
	reconciler := check.Must(running.SetUp(manager))(t)
	w := named("planned", "main")
	check.NoError(t, c.Create(t.Context(), w))
	reconcile := func() error {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		return check.ErrorOf(reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)}))
	}
	env.Until(t, "the component to be ready", func() error {
		if err := reconcile(); err != nil {
			return err
		}
		return isReady(t.Context(), c, w)
	})
	plan("", 0, "main", "Widget planned/main: revision 1", "Nothing changes.")
	plan("", 3, "main --delete", "- ConfigMap  main", "1 write: 1 deleted")
	// A change of the metadata is no change of what is rendered; a namespace that is not legal is refused.
	plan(strings.Replace(manifest, "name: main", "name: main, labels: {a: b}", 1), 0, "-f -", "Nothing changes.")
	document := struct {
		APIVersion, Kind string
		Plan             struct{ Version string }
	}{}
	if err := json.Unmarshal([]byte(plan("", 0, "main -o json")), &document); err != nil || document.Kind != "Plan" || document.Plan.Version == "" {
		t.Errorf("got %+v, error %v", document, err)
	}
	all := plan("", 0, "--all", "WIDGET", "planned/main")
	if !strings.Contains(all, "0 of 1 change") {
		t.Errorf("got\n%s", all)
	}
	if none := plan("", 0, "--all -n default"); strings.Contains(none, "planned/main") {
		t.Errorf("of another namespace:\n%s", none)
	}
	if everywhere, err := execute(t.Context(), o, "", "plan", "--kubeconfig", kubeconfig, "--all"); err != nil || everywhere != all {
		t.Errorf("of all namespaces: %v\n%s", err, everywhere)
	}
	for _, args := range [][]string{{}, {"main", "--all"}, {"--all", "--delete"}, {"main", "-o", "xml"}, {"missing", "-n", "planned"}} {
		if _, err := execute(t.Context(), o, "", append([]string{"plan", "--kubeconfig", kubeconfig}, args...)...); err == nil {
			t.Errorf("%q: no error", args)
		}
	}
	check.NoError(t, c.Delete(t.Context(), w))
	env.Until(t, "the component to be gone", func() error {
		err := reconcile()
		if found := c.Get(t.Context(), client.ObjectKeyFromObject(w), w); client.IgnoreNotFound(found) == nil && found != nil {
			return nil
		}
		return errors.Join(err, errors.New("it is still there at "+time.Now().String()))
	})
}

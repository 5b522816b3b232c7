// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/env"
)

// outputsChart is a chart with these manifests. The name of the reconciler takes the place of NAME.
func outputsChart(t *testing.T, manifests ...string) manifests.Generator {
	t.Helper()
	return must(helm.New(fstest.MapFS{
		"Chart.yaml":         {Data: []byte("apiVersion: v2\nname: outputs\nversion: 1.0.0\n")},
		"templates/all.yaml": {Data: []byte(strings.ReplaceAll(strings.Join(manifests, "\n---\n"), "NAME", operatorName))},
	}, ".", helm.Options{}))(t)
}

const (
	webService    = "{apiVersion: v1, kind: Service, metadata: {name: web, annotations: {NAME/output.port: 'self.spec.ports[0].port'}}, spec: {ports: [{port: 80}]}}"
	lateConfig    = "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, annotations: {NAME/output.host: self.data.host}}}"
	spareConfig   = "{apiVersion: v1, kind: ConfigMap, metadata: {name: spare, annotations: {NAME/output.spare: 'self.?data.?spare'}}}"
	loginSecret   = "{apiVersion: v1, kind: Secret, metadata: {name: login, annotations: {NAME/output.password: \"'x-' + self.data.password\"}}, stringData: {password: {{ .Values.values.password }}}}"
	hiddenService = "{apiVersion: v1, kind: Service, metadata: {name: hidden, annotations: {NAME/secret-output.hidden: self.metadata.name}}, spec: {ports: [{port: 80}]}}"
)

// setConfig sets a key of a ConfigMap of the component as another client does.
func (b *bed) setConfig(name, key, value string) {
	b.Helper()
	live := &corev1.ConfigMap{}
	b.check(b.client.Get(b.Context(), b.key(name), live))
	if live.Data == nil {
		live.Data = map[string]string{}
	}
	live.Data[key] = value
	b.check(b.client.Update(b.Context(), live))
}

// outputs returns the values of the Secret of the secret outputs.
func (b *bed) outputs() map[string]string {
	b.Helper()
	secret, values := &corev1.Secret{}, map[string]string{}
	if err := b.client.Get(b.Context(), b.key("main-outputs"), secret); !apierrors.IsNotFound(err) {
		b.check(err)
	}
	for name, value := range secret.Data {
		values[name] = string(value)
	}
	return values
}

func TestAComponentPublishesOutputs(t *testing.T) {
	b := newBed(t, outputsChart(t, webService, lateConfig, spareConfig, loginSecret, hiddenService), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"password": "geheim"}})
	b.eventually("the output is waited for", func() error {
		if w, _, _ := b.reconcile(); !strings.Contains(w.Status.Conditions[0].Message, "ConfigMap "+b.namespace+"/late: the output host has no value: self.data.host: no such key: data") {
			return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
		}
		return nil
	})
	b.setConfig("late", "host", "example.com")
	w := b.until(v1alpha1.StateReady)
	if diff := cmp.Diff(map[string]string{"host": "example.com", "port": "80"}, w.Status.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"password": "x-geheim", "hidden": "hidden"}, b.outputs()); diff != "" {
		t.Errorf("secret outputs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"hidden", "password"}, w.Status.SecretOutputs); diff != "" {
		t.Errorf("names of secret outputs (-want +got):\n%s", diff)
	}

	// At rest, nothing is written; a change of the source takes one write.
	b.resetRequests()
	b.reconcile()
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("at rest it did %v", writes)
	}
	b.setConfig("spare", "spare", "5")
	b.eventually("the output has changed", func() error {
		if w, _, _ := b.reconcile(); w.Status.Outputs["spare"] != "5" {
			return fmt.Errorf("the outputs are %v", w.Status.Outputs)
		}
		return nil
	})
	if writes := b.writes(); !slices.Equal(writes, []string{"patch widgets/status main"}) {
		t.Errorf("for a changed output it did %v", writes)
	}

	// Another process knows what was published.
	b.restart(outputsChart(t, webService, lateConfig, spareConfig, loginSecret, hiddenService))
	b.resetRequests()
	b.reconcile()
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("after a restart it did %v", writes)
	}

	// The Secret is repaired, and goes with its last output.
	b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main-outputs"}}))
	b.annotate(map[string]string{operatorName + "/reconcile-at": "now"})
	b.reconcile()
	if diff := cmp.Diff(map[string]string{"password": "x-geheim", "hidden": "hidden"}, b.outputs()); diff != "" {
		t.Errorf("secret outputs after the Secret was deleted (-want +got):\n%s", diff)
	}
	b.restart(outputsChart(t, webService))
	b.annotate(map[string]string{operatorName + "/reconcile-at": "later"})
	w = b.until(v1alpha1.StateReady)
	if len(w.Status.Outputs) != 1 || w.Status.SecretOutputs != nil || len(b.outputs()) > 0 {
		t.Errorf("without these objects the outputs are %v and %v, and the Secret has %v", w.Status.Outputs, w.Status.SecretOutputs, b.outputs())
	}
}

func TestOutputsGoWithTheComponent(t *testing.T) {
	b := newReady(t, outputsChart(t, loginSecret), widget.Spec{Values: map[string]string{"password": "geheim"}}, component.ReconcilerOptions{})
	if len(b.outputs()) != 1 {
		t.Fatalf("the secret outputs are %v", b.outputs())
	}
	b.remove()
	if left := b.outputs(); len(left) > 0 {
		t.Errorf("the Secret has %v", left)
	}
}

func TestAForeignSecretIsNotOverwrittenByOutputs(t *testing.T) {
	b := newBed(t, outputsChart(t, loginSecret), component.ReconcilerOptions{})
	b.check(b.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main-outputs"}, Data: map[string][]byte{"a": []byte("b")}}))
	b.create(widget.Spec{Values: map[string]string{"password": "geheim"}})
	w := b.until(v1alpha1.StateError)
	want := "Secret " + b.namespace + "/main-outputs exists and does not belong to Widget " + b.namespace + "/main"
	if _, _, message := w.Status.GetState(); !strings.Contains(message, want) || strings.Contains(message, "geheim") {
		t.Errorf("the message is %q", message)
	}
	if diff := cmp.Diff(map[string]string{"a": "b"}, b.outputs()); diff != "" {
		t.Errorf("the Secret is not as it was (-before +after):\n%s", diff)
	}
	b.remove()
	if len(b.outputs()) != 1 {
		t.Error("the deletion of the component has deleted the Secret")
	}
}

// TestAValueOfASecretIsNoPlainOutput takes a value of a Secret on several ways into the status. Each ends in the Secret, or in a message without the value.
func TestAValueOfASecretIsNoPlainOutput(t *testing.T) {
	const value = "c2VocmdlaGVpbQ"
	for name, test := range map[string]struct {
		manifest string
		secret   bool // the output is published
	}{
		"base64":                  {"{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {NAME/output.a: 'self.data.a'}}, data: {a: {{ .Values.password | b64enc }}}}", true},
		"a length":                {"{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {NAME/output.a: 'size(self.data.a)'}}, stringData: {a: {{ .Values.password }}}}", true},
		"an error text":           {"{apiVersion: v1, kind: Secret, metadata: {name: a, annotations: {NAME/output.a: 'int(self.data.a)'}}, stringData: {a: {{ .Values.password }}}}", false},
		"another object":          {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {NAME/output.a: 'self.data.a'}}, data: {a: {{ .Values.password }}}}", true},
		"an Ingress":              {"{apiVersion: networking.k8s.io/v1, kind: Ingress, metadata: {name: a, annotations: {NAME/output.a: 'self.spec.rules[0].host'}}, spec: {rules: [{host: {{ .Values.password | lower }}}]}}", true},
		"a label":                 {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, labels: {a: {{ .Values.password }}}, annotations: {NAME/output.a: 'self.metadata.labels.a'}}}", true},
		"an error about a config": {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {NAME/output.a: 'int(self.data.a)'}}, data: {a: {{ .Values.password }}}}", false},
		"the expression":          {"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {NAME/output.a: \"self.data.b + '{{ .Values.password }}'\"}}}", false},
	} {
		t.Run(name, func(t *testing.T) {
			chart := strings.ReplaceAll(test.manifest, ".Values.password", ".Values.secret")
			b := newBed(t, withPassword(outputsChart(t, chart)), component.ReconcilerOptions{})
			b.check(b.client.Create(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "source"}, Data: map[string][]byte{"password": []byte(value)}}))
			b.create(widget.Spec{Password: &component.SecretKeyReference{Name: "source"}})
			if test.secret {
				if w := b.until(v1alpha1.StateReady); !slices.Equal(w.Status.SecretOutputs, []string{"a"}) || b.outputs()["a"] == "" {
					t.Errorf("the secret outputs are %v", w.Status.SecretOutputs)
				}
			} else {
				b.eventually("the output is waited for", func() error {
					if w, _, _ := b.reconcile(); !strings.Contains(fmt.Sprint(w.Status.Conditions), "the output a has no value: its expression fails") {
						return fmt.Errorf("the conditions are %+v", w.Status.Conditions)
					}
					return nil
				})
			}
			if w := b.get(); len(w.Status.Outputs) > 0 || strings.Contains(fmt.Sprintf("%+v", w.Status), value) {
				t.Errorf("the status has the value: %v, %+v", w.Status.Outputs, w.Status.Conditions)
			}
		})
	}
}

// withPassword passes the loaded password of a widget to a chart, as the value secret.
func withPassword(chart manifests.Generator) manifests.Generator {
	return manifests.For(func(ctx context.Context, namespace, name string, spec *widget.Spec) ([]client.Object, error) {
		return manifests.Generate(ctx, chart, namespace, name, types.UnstructurableMap{"secret": string(spec.Password.Value())})
	})
}

// TestOutputsOfAnObjectThatIsAppliedOnce declares an output of an object that is not written any more, so that it does not get the annotation.
func TestOutputsOfAnObjectThatIsAppliedOnce(t *testing.T) {
	chart := outputsChart(t, "{apiVersion: v1, kind: Secret, metadata: {name: login, annotations: {NAME/reconcile-policy: once}}, stringData: {password: geheim}}")
	b := newReady(t, chart, widget.Spec{}, component.ReconcilerOptions{})
	list := []component.Output{{Name: "password", Type: v1alpha1.TypeInfo{Kind: "Secret"}, Expression: "self.data.password"}}
	b.restartWith(chart, component.ReconcilerOptions{Objects: component.ObjectOptions{Outputs: list}})
	for range 3 {
		b.reconcile()
		if diff := cmp.Diff(map[string]string{"password": "geheim"}, b.outputs()); diff != "" {
			t.Fatalf("secret outputs (-want +got):\n%s", diff)
		}
		b.annotate(map[string]string{operatorName + "/reconcile-at": time.Now().Format(time.RFC3339Nano)})
	}
}

// TestOutputsOfAComponentWithALongName reports a name that is too long for the Secret.
func TestOutputsOfAComponentWithALongName(t *testing.T) {
	b := newBed(t, outputsChart(t, loginSecret), component.ReconcilerOptions{})
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: strings.Repeat("a", 246)}, Spec: widget.Spec{Values: map[string]string{"password": "geheim"}}}
	b.check(b.client.Create(t.Context(), w))
	b.eventually("the name is reported", func() error {
		_, _ = b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(w)})
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(w), w))
		if _, _, message := w.Status.GetState(); !strings.Contains(message, "must be shorter") {
			return fmt.Errorf("the message is %q", message)
		}
		return nil
	})
}

func TestOutputsOfTheOperator(t *testing.T) {
	list := []component.Output{
		{Name: "port", Type: v1alpha1.TypeInfo{Kind: "Service"}, Object: "w*", Expression: "self.spec.ports[0].port"},
		{Name: "absent", Type: v1alpha1.TypeInfo{Kind: "Service"}, Object: "absent", Expression: "self.spec.clusterIP"},
		{Name: "name", Type: v1alpha1.TypeInfo{Kind: "ConfigMap"}, Expression: "self.metadata.name", Secret: true},
	}
	service := strings.ReplaceAll(webService, "NAME/output.port", "other")
	b := newReady(t, outputsChart(t, service, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), widget.Spec{}, component.ReconcilerOptions{Objects: component.ObjectOptions{Outputs: list}})
	if diff := cmp.Diff(map[string]string{"port": "80"}, b.get().Status.Outputs); diff != "" {
		t.Errorf("outputs (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"name": "a"}, b.outputs()); diff != "" {
		t.Errorf("secret outputs (-want +got):\n%s", diff)
	}
}

// TestOutputsSurviveACrashAtAnyRequest kills the operator at each request of an installation and of a change of a secret output.
func TestOutputsSurviveACrashAtAnyRequest(t *testing.T) {
	env.Shared(t)
	chart := outputsChart(t, webService, loginSecret)
	for name, before := range map[string]string{"install": "", "change": "alt"} {
		t.Run(name, func(t *testing.T) {
			crashAtEachRequest(t, func(t *testing.T, at int, after bool) (requests int, crashed bool) {
				b := newBed(t, chart, component.ReconcilerOptions{})
				if before != "" {
					b.create(widget.Spec{Values: map[string]string{"password": before}})
					b.until(v1alpha1.StateReady)
					b.update(func(w *widget.Widget) { w.Spec.Values["password"] = "neu" })
				} else {
					b.create(widget.Spec{Values: map[string]string{"password": "neu"}})
				}
				gate, until := b.crashing(chart, component.ReconcilerOptions{}, at, after)
				until("the component is ready", func() bool {
					w := b.get()
					return w.Status.IsReady() && w.Status.AppliedGeneration == w.Generation
				})
				if got := b.outputs(); got["password"] != "x-neu" || !slices.Equal(b.get().Status.SecretOutputs, []string{"password"}) {
					t.Errorf("the secret outputs are %v", got)
				}
				return len(gate.Requests()), gate.HasCrashed()
			})
		})
	}
}

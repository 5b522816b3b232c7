// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"github.com/go-logr/logr"
	"github.com/go-logr/logr/funcr"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

// crookedCanary has characters that are escaped in messages. It stands in every Secret of a test, and must be found nowhere else.
const crookedCanary = "canary-8f14e45f\"ceea/167a+5a36"

// watchman records all output of an operator.
type watchman struct {
	*bed
	spans  *tracetest.InMemoryExporter
	mu     sync.Mutex
	output strings.Builder
	// told counts the lines of the log that hold the text of an error which is reported nowhere else.
	told int
}

// newWatchman sets up an operator and records its output.
func newWatchman(t *testing.T, generator manifests.Generator, configure ...func(*bed)) *watchman {
	t.Helper()
	w := &watchman{spans: tracetest.NewInMemoryExporter()}
	// What is not logged by way of a context goes here.
	klog.SetLogger(w.logger())
	t.Cleanup(klog.ClearLogger)
	w.bed = newBed(t, generator, component.ReconcilerOptions{
		Controller: component.ControllerOptions{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))},
	}, configure...)
	return w
}

func (w *watchman) logger() logr.Logger {
	return funcr.New(func(prefix, line string) {
		if strings.Contains(line, "an error is not reported as it is") || strings.Contains(line, "a mistake is reported without values") {
			w.mu.Lock()
			defer w.mu.Unlock()
			w.told++
			return
		}
		w.record("log: " + prefix + " " + line)
	}, funcr.Options{Verbosity: 10})
}

func (w *watchman) record(text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.output.WriteString(text + "\n")
}

// reconciles runs reconciles, and keeps what they return and what the status says.
func (w *watchman) reconcileTimes(n int) {
	w.Helper()
	for range n {
		ctx := logf.IntoContext(w.Context(), w.logger())
		result, err := w.reconciler.Reconcile(ctx, ctrl.Request{NamespacedName: w.key("main")})
		w.record(fmt.Sprintf("returned: %+v %v %+v", result, err, err))
		obj := &widget.Widget{}
		if err := w.client.Get(w.Context(), w.key("main"), obj); client.IgnoreNotFound(err) != nil {
			w.Fatal(err)
		}
		encoded, err := json.Marshal(obj)
		w.check(err)
		w.record("component: " + string(encoded))
	}
}

// everything returns the output up to now, once the events have arrived.
func (w *watchman) everything(reason string) string {
	w.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		list := &eventsv1.EventList{}
		w.check(w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
		encoded, err := json.Marshal(list)
		w.check(err)
		if arrived := strings.Contains(string(encoded), `"reason":"`+reason+`"`); arrived || time.Now().After(deadline) {
			if !arrived {
				w.Errorf("no event %s: %s", reason, encoded)
			}
			w.record("events: " + string(encoded))
			break
		}
	}
	families, err := metrics.Registry.Gather()
	w.check(err)
	w.record(fmt.Sprintf("metrics: %v", families))
	for _, span := range w.spans.GetSpans() {
		w.record(fmt.Sprintf("span: %s %+v %v %v", span.Name, span.Status, span.Attributes, span.Events))
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.output.String()
}

// checkCanary looks for the canary in every form that it may take.
func (w *watchman) checkCanary(output string) {
	w.Helper()
	encoded := base64.RawStdEncoding.EncodeToString([]byte(crookedCanary))
	for _, form := range []string{"canary-8f", "8f14e45f", "ceea/167a", encoded[:12], encoded[8:20], "99 97 110 97 114 121"} {
		if at := strings.Index(output, form); at >= 0 {
			w.Errorf("%q was found: ...%s...", form, output[max(0, at-300):min(len(output), at+100)])
		}
	}
}

// templated is a generator of one template.
func templated(t *testing.T, text string) manifests.Generator {
	t.Helper()
	return must(gotemplate.New(fstest.MapFS{"all.yaml": {Data: []byte(text)}}, ".", gotemplate.Options{}))(t)
}

// found is the canary, as a template finds it in a Secret of the cluster.
const found = `{{ $canary := (lookup "v1" "Secret" .Namespace "source").data.value | b64dec }}`

func TestASecretIsReportedNowhere(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\nstringData: {value: {{ $canary | quote }}}\n---\n"
	for name, template := range map[string]string{
		"everything is well":                 secret,
		"a template fails with it":           `{{ fail $canary }}`,
		"a template fails with a part":       `{{ fail (trunc 18 $canary) }}...`,
		"a template does not fit":            `{{ add $canary 1 }}{{ index (list 1) $canary }}`,
		"the manifests are no YAML":          "a: b: {{ $canary }}: [\n",
		"a manifest is of the wrong form":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $canary | quote }}, labels: {{ $canary | quote }}}\n",
		"a Secret is invalid":                "apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\ntype: kubernetes.io/tls\nstringData: {{ dict $canary $canary | toJson }}\n",
		"a policy is unknown":                "apiVersion: v1\nkind: Secret\nmetadata: {name: copy, annotations: {test.corbel.run/update-policy: {{ $canary | quote }}}}\n",
		"an object repeats it":               secret + "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {type: {{ $canary | quote }}, ports: [{port: 1, name: {{ $canary | quote }}}]}\n",
		"a server-side apply repeats it":     secret + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, annotations: {test.corbel.run/update-policy: ssa-merge}}\nspec: {replicas: {{ $canary | quote }}}\n",
		"an admission policy repeats it":     secret + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: forbidden}\ndata: {value: {{ $canary | quote }}, encoded: {{ $canary | b64enc }}}\n",
		"an admission policy has a Secret":   "apiVersion: v1\nkind: Secret\nmetadata: {name: forbidden}\nstringData: {value: {{ $canary | quote }}}\n",
		"the name of a namespace repeats it": secret + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {{ $canary | quote }}}\n",
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchman(t, templated(t, found+template))
			w.deny()
			w.check(w.client.Create(t.Context(), &corev1.Secret{
				ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "source"}, Data: map[string][]byte{"value": []byte(crookedCanary)},
			}))
			w.create(widget.Spec{})
			w.reconcileTimes(3)
			_, reason, message := w.get().Status.GetState()
			w.checkCanary(w.everything(reason))
			t.Logf("%s: %s", reason, message)
			if name != "everything is well" && reason == vocabulary.ReasonReady {
				t.Error("the test does not test what it should")
			}
		})
	}
}

// deny makes an admission policy repeat what it refuses: objects of one name.
func (w *watchman) deny() {
	w.Helper()
	meta := metav1.ObjectMeta{Name: w.namespace}
	all := []admissionv1.OperationType{admissionv1.OperationAll}
	w.check(w.client.Create(w.Context(), &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: all, Rule: admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"secrets", "configmaps"}},
		}}}},
		Validations: []admissionv1.Validation{{
			Expression:        `object.metadata.name != "forbidden"`,
			MessageExpression: `"no: " + string(object.data.value) + (has(object.data.encoded) ? string(object.data.encoded) : "")`,
		}},
	}}))
	w.check(w.client.Create(w.Context(), &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: w.namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"kubernetes.io/metadata.name": w.namespace}}},
	}}))
	probe := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "forbidden"}, Data: map[string]string{"value": "probe"}}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		if err := w.client.Create(w.Context(), probe.DeepCopy(), client.DryRunAll); err != nil && strings.Contains(err.Error(), "no: probe") {
			return
		}
		if time.Now().After(deadline) {
			w.Fatal("the admission policy does not become active")
		}
	}
}

func TestWhatAReferenceHoldsIsReportedNowhere(t *testing.T) {
	renderings := 0
	const inLog, field = "generator: it failed; the log of the operator has the error", "/a: the server refused it (Invalid, 422): data[...]: Invalid value"
	for name, generate := range map[string]func(value string) ([]client.Object, error){
		"everything is well": func(value string) ([]client.Object, error) {
			return []client.Object{&corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"value": value},
			}}, nil
		},
		"a generator fails with it":  func(value string) ([]client.Object, error) { return nil, errors.New(value) },
		"a generator panics with it": func(value string) ([]client.Object, error) { panic(value) },
		"a manifest repeats it": func(value string) ([]client.Object, error) {
			return []client.Object{&corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{value: "1"},
			}}, nil
		},
		"a manifest repeats it with something random": func(value string) ([]client.Object, error) {
			renderings++
			return []client.Object{&corev1.ConfigMap{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{value: fmt.Sprint(renderings)},
			}}, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWatchman(t, manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
				return generate(string(parameters.(*widget.Spec).Password.Value()))
			}), func(b *bed) {
				hook := func(_ context.Context, _ client.Client, w *widget.Widget) error {
					if got := string(w.Spec.Password.Value()); got != crookedCanary {
						b.Errorf("a hook finds %d bytes", len(got))
					}
					w.Status.Note = "x"
					return nil
				}
				b.reconciler.WithPostReadHook(hook).WithPreReconcileHook(hook).WithPostReconcileHook(hook)
			})
			w.createSecret("source", map[string]string{"token": crookedCanary})
			w.create(widget.Spec{Password: &component.SecretKeyReference{Name: "source"}})
			w.reconcileTimes(2)
			_, reason, message := w.get().Status.GetState()
			w.checkCanary(w.everything(reason))
			want := field
			switch {
			case strings.HasPrefix(name, "a generator"):
				want = inLog
			case name == "everything is well":
				want = "1 of 1 dependent objects are ready"
			}
			if told := w.told > 0; !strings.Contains(message, want) && !strings.Contains(message, "data: the name") || told != (want == inLog) {
				t.Errorf("%s: %s, and %d lines of the log", reason, message, w.told)
			}
		})
	}
}

// series returns the value of every series of a metric, by its labels but the controller.
func (b *bed) series(name string) map[string]float64 {
	b.Helper()
	families, err := metrics.Registry.Gather()
	b.check(err)
	values := map[string]float64{}
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, one := range family.GetMetric() {
			var labels []string
			for _, label := range one.GetLabel() {
				if label.GetName() != "controller" {
					labels = append(labels, label.GetValue())
				}
			}
			values[strings.Join(labels, " ")] += one.GetGauge().GetValue() + one.GetCounter().GetValue() + float64(one.GetHistogram().GetSampleCount())
		}
	}
	return values
}

// since returns what has changed of a metric.
func since(before, now map[string]float64) map[string]float64 {
	changed := map[string]float64{}
	for labels, value := range now {
		if difference := value - before[labels]; difference != 0 {
			changed[labels] = difference
		}
	}
	return changed
}

func TestTheMetricsOfALifeNameNoObjectAndEndWithIt(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(context.Context, client.Client, *widget.Widget) error { return nil })
	})
	names := []string{"corbel_components", "corbel_dependents", "corbel_reconcile_total", "corbel_writes_total", "corbel_phase_duration_seconds", "corbel_requests_total"}
	before := map[string]map[string]float64{}
	for _, name := range names {
		before[name] = b.series(name)
	}
	changed := func(name string) map[string]float64 { return since(before[name], b.series(name)) }

	b.create(widget.Spec{Values: map[string]string{"alpha": "1", "beta": "2"}})
	b.until(v1alpha1.StateReady)
	for _, tc := range []struct {
		name, labels string
		want         float64
	}{
		{"corbel_components", "Ready Ready", 1},
		{"corbel_dependents", "Applied", 2},
		{"corbel_reconcile_total", "ready", 1},
		{"corbel_writes_total", "missing create", 2},
	} {
		if got := changed(tc.name)[tc.labels]; got != tc.want {
			t.Errorf("%s{%s} is %v, want %v: %v", tc.name, tc.labels, got, tc.want, changed(tc.name))
		}
	}
	if got := slices.Sorted(maps.Keys(changed("corbel_phase_duration_seconds"))); !slices.Equal(got, []string{"execute", "hooks", "plan", "read", "record", "render"}) {
		t.Errorf("phases %v", got)
	}
	// Both the operator's requests about the component and those about its dependents.
	if got := changed("corbel_requests_total"); got["2xx create"] < 2 || got["2xx patch"] < 2 {
		t.Errorf("requests %v", got)
	}
	b.checkLabels("alpha", "beta", "main", b.namespace)

	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	for _, name := range []string{"corbel_components", "corbel_dependents"} {
		if left := changed(name); len(left) > 0 {
			t.Errorf("%s still counts %v", name, left)
		}
	}
	if changed("corbel_reconcile_total")["gone"] == 0 {
		t.Error("the last reconcile was not counted")
	}
}

// checkLabels fails if a label of our metrics has a value that names an object.
func (b *bed) checkLabels(names ...string) {
	b.Helper()
	families, err := metrics.Registry.Gather()
	b.check(err)
	seen := 0
	for _, family := range families {
		if !strings.HasPrefix(family.GetName(), "corbel_") {
			continue
		}
		seen++
		for _, one := range family.GetMetric() {
			for _, label := range one.GetLabel() {
				if slices.ContainsFunc(names, func(name string) bool { return strings.Contains(label.GetValue(), name) }) {
					b.Errorf("%s has the label %s=%q", family.GetName(), label.GetName(), label.GetValue())
				}
			}
		}
	}
	if seen == 0 {
		b.Error("there are no metrics")
	}
}

func TestSpansOfAReconcile(t *testing.T) {
	w := newWatchman(t, manifests.GeneratorFunc(configMaps))
	w.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w.reconcileTimes(1)
	byID, parents := map[string]string{}, map[string]string{}
	spans := w.spans.GetSpans()
	for _, span := range spans {
		byID[span.SpanContext.SpanID().String()] = span.Name
	}
	for _, span := range spans {
		parents[span.Name] = byID[span.Parent.SpanID().String()]
	}
	for name, parent := range map[string]string{
		"corbel.reconcile": "", "corbel.render": "corbel.reconcile", "corbel.read": "corbel.reconcile", "corbel.plan": "corbel.reconcile",
		"corbel.record": "corbel.reconcile", "corbel.execute": "corbel.reconcile", "corbel.stage": "corbel.execute", "corbel.write": "corbel.stage",
	} {
		if got, ok := parents[name]; !ok || got != parent {
			t.Errorf("span %s is below %q, want %q: %v", name, got, parent, parents)
		}
	}
}

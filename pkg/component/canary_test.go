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
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

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

// The generator gets the value by a lookup of its template, or by a reference of the spec.
func TestASecretIsReportedNowhere(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\nstringData: {value: {{ $canary | quote }}}\n---\n"
	const ready, inLog = "1 of 1 dependent objects are ready", "generator: it failed; the log of the operator has the error"
	const field = "/a: the server refused it (Invalid, 422): data[...]: Invalid value"
	renderings := 0
	for name, test := range map[string]struct {
		template string
		generate func(value string) ([]client.Object, error) // instead of the template
		says     string                                      // empty: anything but that it is ready
	}{
		"all is well":                        {template: secret, says: ready},
		"a template fails with it":           {template: `{{ fail $canary }}`},
		"a template fails with a part":       {template: `{{ fail (trunc 18 $canary) }}...`},
		"a template does not fit":            {template: `{{ add $canary 1 }}{{ index (list 1) $canary }}`},
		"the manifests are no YAML":          {template: "a: b: {{ $canary }}: [\n"},
		"a manifest is of the wrong form":    {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ $canary | quote }}, labels: {{ $canary | quote }}}\n"},
		"a Secret is invalid":                {template: "apiVersion: v1\nkind: Secret\nmetadata: {name: copy}\ntype: kubernetes.io/tls\nstringData: {{ dict $canary $canary | toJson }}\n"},
		"a policy is unknown":                {template: "apiVersion: v1\nkind: Secret\nmetadata: {name: copy, annotations: {test.corbel.run/update-policy: {{ $canary | quote }}}}\n"},
		"an object repeats it":               {template: secret + "apiVersion: v1\nkind: Service\nmetadata: {name: b}\nspec: {type: {{ $canary | quote }}, ports: [{port: 1, name: {{ $canary | quote }}}]}\n"},
		"a server-side apply repeats it":     {template: secret + "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: b, annotations: {test.corbel.run/update-policy: ssa-merge}}\nspec: {replicas: {{ $canary | quote }}}\n"},
		"the name of a namespace repeats it": {template: secret + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, namespace: {{ $canary | quote }}}\n"},

		"all is well with a reference": {says: ready, generate: func(value string) ([]client.Object, error) {
			return []client.Object{&corev1.Secret{
				TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Secret"}, ObjectMeta: metav1.ObjectMeta{Name: "a"}, StringData: map[string]string{"value": value},
			}}, nil
		}},
		"a generator fails with it":  {says: inLog, generate: func(value string) ([]client.Object, error) { return nil, errors.New(value) }},
		"a generator panics with it": {says: inLog, generate: func(value string) ([]client.Object, error) { panic(value) }},
		"a manifest repeats it": {says: field, generate: func(value string) ([]client.Object, error) {
			return []client.Object{configMap("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{value: "1"} })}, nil
		}},
		"a manifest repeats it with something random": {says: field, generate: func(value string) ([]client.Object, error) {
			renderings++
			return []client.Object{configMap("a", func(c *corev1.ConfigMap) { c.Data = map[string]string{value: fmt.Sprint(renderings)} })}, nil
		}},
	} {
		t.Run(name, func(t *testing.T) {
			spec, generator := widget.Spec{}, templated(t, found+test.template)
			if test.generate != nil {
				spec.Password = &component.SecretKeyReference{Name: "source"}
				generator = manifests.GeneratorFunc(func(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
					return test.generate(string(parameters.(*widget.Spec).Password.Value()))
				})
			}
			w := newWatchman(t, generator, func(b *bed) {
				hook := func(_ context.Context, _ client.Client, w *widget.Widget) error {
					if got := string(w.Spec.Password.Value()); spec.Password != nil && got != crookedCanary {
						b.Errorf("a hook finds %d bytes", len(got))
					}
					w.Status.Note = "x"
					return nil
				}
				b.reconciler.WithPostReadHook(hook).WithPreReconcileHook(hook).WithPostReconcileHook(hook)
			})
			w.createSecret("source", map[string]string{"token": crookedCanary, "value": crookedCanary})
			w.create(spec)
			w.reconcileTimes(3)
			_, reason, message := w.get().Status.GetState()
			w.checkCanary(w.everything(reason))
			t.Logf("%s: %s", reason, message)
			fits := strings.Contains(message, test.says) || test.says == field && strings.Contains(message, "data: the name")
			if !fits || (reason == vocabulary.ReasonReady) != (test.says == ready) {
				t.Errorf("%s: %s", reason, message)
			}
			if told := w.told > 0; test.generate != nil && told != (test.says == inLog) {
				t.Errorf("%d lines of the log have the error of the generator", w.told)
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

func TestMetricsAndSpansOfALife(t *testing.T) {
	b := newWatchman(t, manifests.GeneratorFunc(configMaps), func(b *bed) {
		b.reconciler.WithPostReconcileHook(func(context.Context, client.Client, *widget.Widget) error { return nil })
	})
	names := []string{"corbel_components", "corbel_dependents", "corbel_reconcile_total", "corbel_writes_total", "corbel_phase_duration_seconds", "corbel_requests_total"}
	before := map[string]map[string]float64{}
	for _, name := range names {
		before[name] = b.series(name)
	}
	changed := func(name string) map[string]float64 { return since(before[name], b.series(name)) }

	const called = "alpha-component"
	b.check(b.client.Create(t.Context(), b.widgetOf(called, object{"values": object{"alpha-object": "1", "beta": "2"}})))
	if w, err := b.passOf(called); !w.Status.IsReady() {
		t.Fatalf("it is not ready: %v", err)
	}
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
	families, err := metrics.Registry.Gather()
	b.check(err)
	for _, name := range []string{b.namespace, called, "alpha-object"} {
		if strings.Contains(fmt.Sprint(families), name) {
			t.Errorf("a metric names %s", name)
		}
	}

	byID, parents := map[string]string{}, map[string]string{}
	for _, span := range b.spans.GetSpans() {
		byID[span.SpanContext.SpanID().String()] = span.Name
	}
	for _, span := range b.spans.GetSpans() {
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

	b.check(b.client.Delete(t.Context(), b.widgetOf(called, nil)))
	b.untilGoneOf(called)
	for _, name := range []string{"corbel_components", "corbel_dependents"} {
		if left := changed(name); len(left) > 0 {
			t.Errorf("%s still counts %v", name, left)
		}
	}
	if changed("corbel_reconcile_total")["gone"] == 0 {
		t.Error("the last reconcile was not counted")
	}
}

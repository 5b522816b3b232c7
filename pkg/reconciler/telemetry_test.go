// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// witness collects everything that an engine logs, notes and measures.
type witness struct {
	*bench
	spans *tracetest.InMemoryExporter
	mu    sync.Mutex
	lines []string
}

func newWitness(t *testing.T) *witness {
	t.Helper()
	w := &witness{bench: newBench(t), spans: tracetest.NewInMemoryExporter()}
	w.interpose(t, reconciler.ReconcilerOptions{TracerProvider: sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.spans))})
	return w
}

func (w *witness) context() context.Context {
	return log.IntoContext(w.t.Context(), funcr.New(func(_, line string) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.lines = append(w.lines, line)
	}, funcr.Options{Verbosity: 10}))
}

func (w *witness) apply(objects ...client.Object) (reconciler.Outcome, error) {
	outcome, err := w.engine.Apply(w.context(), w.request(objects...))
	w.inventory = outcome.Inventory
	return outcome, err
}

func TestEveryPartOfACallHasASpanAndEveryStepALine(t *testing.T) {
	w := newWitness(t)
	check.NoError(t, check.ErrorOf(w.apply(config("a", "1"), config("b", "1"))))
	names := map[string]int{}
	parents := map[string]string{}
	byID := map[string]string{}
	for _, span := range w.spans.GetSpans() {
		byID[span.SpanContext.SpanID().String()] = span.Name
	}
	for _, span := range w.spans.GetSpans() {
		names[span.Name]++
		parents[span.Name] = byID[span.Parent.SpanID().String()]
	}
	if names["corbel.write"] != 2 || names["corbel.stage"] != 1 || names["corbel.record"] != 1 || names["corbel.plan"] == 0 || names["corbel.read"] == 0 {
		t.Errorf("spans %v", names)
	}
	if d := cmp.Diff("corbel.stage", parents["corbel.write"]); d != "" || parents["corbel.stage"] != "corbel.execute" {
		t.Errorf("parents %v", parents)
	}
	written := slices.DeleteFunc(slices.Clone(w.lines), func(line string) bool { return !strings.Contains(line, `"wrote an object"`) })
	if len(written) != 2 {
		t.Fatalf("lines of the log:\n%s", strings.Join(w.lines, "\n"))
	}
	check.Contains(t, written[0], `"level"=1`, `"verb"="create"`, `"object"="ConfigMap `+w.namespace, `"because"="missing"`, `"uid"="`)
}

// canary is a value that must be found nowhere but in Secrets.
const canary = "canary-5d41402abc4b"

func secretWith(name string, change func(content map[string]any)) *unstructured.Unstructured {
	content := map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": name}, "stringData": map[string]any{"password": canary},
	}
	change(content)
	return &unstructured.Unstructured{Object: content}
}

func TestNoSecretIsReportedWhateverTheServerAnswers(t *testing.T) {
	encoded := base64.StdEncoding.EncodeToString([]byte(canary))
	merge := map[string]any{engineName + "/update-policy": "ssa-merge"}
	for name, objects := range map[string][]client.Object{
		"an illegal key":            {secretWith("a", func(content map[string]any) { content["stringData"] = map[string]any{"a/b": canary, canary + "/": "x"} })},
		"an illegal type of Secret": {secretWith("a", func(content map[string]any) { content["type"] = "kubernetes.io/dockerconfigjson" })},
		"data of the wrong form":    {secretWith("a", func(content map[string]any) { content["data"] = map[string]any{"a": canary} })},
		"data of the wrong type":    {secretWith("a", func(content map[string]any) { content["data"] = map[string]any{"a": map[string]any{"b": canary}} })},
		"an apply of the wrong type": {secretWith("a", func(content map[string]any) {
			content["metadata"].(map[string]any)["annotations"] = merge
			content["data"] = []any{canary}
		})},
		"a value that is repeated elsewhere": {
			secretWith("a", func(map[string]any) {}),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": "b"},
				"spec": map[string]any{"type": canary, "externalName": encoded, "ports": []any{map[string]any{"port": int64(1), "name": canary + "_"}}},
			}},
		},
		"an apply that repeats the value": {
			secretWith("a", func(map[string]any) {}),
			&unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "b", "annotations": merge},
				"spec": map[string]any{"replicas": canary, "template": []any{encoded}},
			}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWitness(t)
			w.confidential = strings.Contains(name, "repeat")
			outcome, err := w.apply(objects...)
			if err == nil {
				t.Fatal("the server accepts it")
			}
			var shown strings.Builder
			fmt.Fprintf(&shown, "%v\n%+v\n%v\n%s\n", err, outcome.Waiting, outcome.Notes, strings.Join(w.lines, "\n"))
			for _, span := range w.spans.GetSpans() {
				fmt.Fprintf(&shown, "%s %v %v\n", span.Status.Description, span.Attributes, span.Events)
			}
			for _, form := range []string{canary, encoded[:len(encoded)-3], "99 97 110 97 114 121"} {
				if strings.Contains(shown.String(), form) {
					t.Errorf("%s is shown: ...%s", form, around(shown.String(), form))
				}
			}
			t.Logf("%v", err)
		})
	}
}

// around shows where the form stands in the text.
func around(text, form string) string {
	at := strings.Index(text, form)
	return text[max(0, at-200):min(len(text), at+200)]
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"fmt"
	"log"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// listener keeps what is logged.
type listener struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *listener) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

// listen returns everything that the global loggers say from now on.
func listen(t *testing.T) *listener {
	t.Helper()
	l := &listener{}
	standard, writer, flags := slog.Default(), log.Writer(), log.Flags()
	// This redirects the standard logger, too, which is set right after it.
	slog.SetDefault(slog.New(slog.NewTextHandler(l, &slog.HandlerOptions{Level: slog.LevelDebug})))
	log.SetOutput(l)
	t.Cleanup(func() {
		slog.SetDefault(standard)
		log.SetOutput(writer)
		log.SetFlags(flags)
	})
	return l
}

// conflicting is a chart with defaults of other types than the values
// that it is given.
func conflicting() map[string]string {
	const sub = "apiVersion: v2\nname: db\nversion: 1.0.0\n"
	return map[string]string{
		"web/Chart.yaml": chartFile + "dependencies:\n- name: db\n  condition: db.on,switch\n  tags: [flag]\n" +
			"  import-values:\n  - data\n  - {child: deep, parent: imported}\n  - {child: flat, parent: imported}\n",
		"web/values.yaml": "table: {a: {b: 1}}\nscalar: x\nnothing: null\nlist: [1]\nimported: {a: default-7c1}\n" +
			"global: {table: {a: x}, scalar: x}\ndb: {deep: {a: {b: default-7c1}}, own: {x: default-7c1}}\n",
		"web/charts/db/Chart.yaml": sub,
		"web/charts/db/values.yaml": "own: {x: {y: default-7c1}}\ndeep: {a: default-7c1}\nexports: {data: {table: default-7c1}}\n" +
			"global: {table: {a: {b: default-7c1}}, scalar: {a: default-7c1}}\n",
		"web/templates/a.yaml": manifest(`{{ toJson .Values | sha256sum }}`),
	}
}

func TestNoValueIsLogged(t *testing.T) {
	const canary = "canary-5d41402a"
	table := map[string]any{"a": canary, "b": []any{canary}, "n": 90417263.0, "deep": map[string]any{"a": canary}}
	shapes := map[string]any{"scalar": canary, "number": 90417263.0, "list": []any{canary, map[string]any{"a": canary}}, "table": table, "null": nil}
	heard := listen(t)
	fields := []string{
		"table", "table.a", "table.a.b", "scalar", "nothing", "list", "imported", "imported.a", "db.on", "switch", "tags.flag", "tags",
		"global", "global.table", "global.table.a", "global.table.a.b", "global.scalar", "db", "db.own", "db.own.x", "db.deep", "db.deep.a",
		"db.global", "db.global.table", "db.global.table.a", "db.global.scalar", "db.exports", "db.exports.data", "unknown",
	}
	var errs strings.Builder
	for _, first := range fields {
		for _, second := range []string{"", "table", "global.table.a", "db", "db.own", "imported"} {
			for name, shape := range shapes {
				values := map[string]any{"global": map[string]any{"table": map[string]any{"a": canary}}}
				put(values, first, shape)
				put(values, second, shapes["table"])
				if _, err := render(reconciling(t.Context(), 1), folder(conflicting()), values, helm.Options{}); err != nil {
					errs.WriteString(first + "," + second + "=" + name + ": " + err.Error() + "\n")
				}
			}
		}
	}
	logged := heard.text.String()
	for what, text := range map[string]string{"log": logged, "error": errs.String()} {
		for _, value := range []string{canary, "90417263", "9.0417263", "default-7c1"} {
			if at := strings.Index(text, value); at >= 0 {
				t.Errorf("the %s shows the value: %s", what, text[max(0, at-200):min(len(text), at+100)])
			}
		}
	}
	// Otherwise the test would prove nothing.
	if !strings.Contains(logged, "cannot overwrite table with non table") || !strings.Contains(logged, "Ignoring non-table value") {
		t.Errorf("there was no conflict: %.500s", logged)
	}
}

// put sets the value at a path.
func put(values map[string]any, path string, value any) {
	if path == "" {
		return
	}
	name, rest, deeper := strings.Cut(path, ".")
	if !deeper {
		values[name] = value
		return
	}
	inner, ok := values[name].(map[string]any)
	if !ok {
		inner = map[string]any{}
	}
	copied := map[string]any{}
	for key, item := range inner {
		copied[key] = item
	}
	put(copied, rest, value)
	values[name] = copied
}

func TestAnUnknownHookIsAnErrorThatDoesNotHoldItsValue(t *testing.T) {
	heard := listen(t)
	text := manifest("one") + "---\n" + hook("Job", "b", "'pre-install,canary-77'", "") + hook("ConfigMap", "c", "pre-install", "") + hook("Job", "d", "pre-instal", "")
	_, err := render(reconciling(t.Context(), 1), folder(map[string]string{"web/templates/a.yaml": text}), nil, helm.Options{})
	wantError(t, err, "web/templates/a.yaml: Job b: annotation helm.sh/hook has a value that Helm does not know", "Job d: annotation",
		"allowed are pre-install, post-install, pre-delete, post-delete, pre-upgrade, post-upgrade, pre-rollback, post-rollback, test")
	if logged := heard.text.String() + fmt.Sprint(err); strings.Contains(logged, "canary") {
		t.Errorf("the value is shown: %s", logged)
	}
}

func TestHooksOfHelm2AreLeftOut(t *testing.T) {
	text := "# first\n" + manifest("one") + "---\n" + hook("Job", "b", "crd-install", "") + hook("ConfigMap", "c", "pre-install", "") + manifest("two")
	objects, err := render(reconciling(t.Context(), 1), folder(map[string]string{"web/templates/a.yaml": text}), nil, helm.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(objects) != 3 || data(t, objects[0]) != "one" || data(t, objects[1]) != "two" || objects[2].GetName() != "c" {
		t.Errorf("got %v", objects)
	}
}

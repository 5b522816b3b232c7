// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"embed"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

//go:embed testdata/embedded
var withoutAll embed.FS

//go:embed all:testdata/embedded
var withAll embed.FS

func TestAChartThatWasEmbeddedWithoutAllIsRefusedByNew(t *testing.T) {
	_, err := helm.New(withoutAll, "testdata/embedded", helm.Options{})
	wantError(t, err, `web/templates/a.yaml:4:`, `there is no template "web.fullname"`, `embed it with the prefix "all:"`)
	if _, err := helm.New(withAll, "testdata/embedded", helm.Options{}); err != nil {
		t.Error(err)
	}
}

func TestAChartThatCallsAMissingTemplateOnConditionIsNotRefusedByNew(t *testing.T) {
	for name, text := range map[string]string{
		"a branch":           `{{ if .Values.other }}{{ include "nope" . }}{{ end }}x`,
		"a loop":             `{{ range .Values.other }}{{ template "nope" . }}{{ end }}x`,
		"a block with with":  `{{ with .Values.other }}{{ include "nope" . }}{{ end }}x`,
		"an argument of or":  `{{ or .Values.x (include "nope" .) }}`,
		"an argument of and": `{{ and .Values.other (include "nope" .) | default "x" }}`,
		"a definition":       `{{ define "a" }}{{ include "nope" . }}{{ end }}x`,
		"a name of a file":   `{{ include "web/templates/b.txt" . }}`,
		"a computed name":    `{{ include (print "web/templates/" "b.txt") . }}`,
	} {
		objects, err := render(t.Context(), folder(map[string]string{"web/templates/a.yaml": manifest(text), "web/templates/b.txt": "{{/* x */}}"}), map[string]any{"x": "x"}, helm.Options{})
		if err != nil || len(objects) != 1 {
			t.Errorf("%s: got %v, %v", name, objects, err)
		}
	}
	chart := map[string]string{"web/templates/a.yaml": manifest(`{{ if .Values.x }}{{ include "nope" . }}{{ end }}`)}
	_, err := render(t.Context(), folder(chart), map[string]any{"x": "x"}, helm.Options{})
	wantError(t, err, `web/templates/a.yaml:`, `there is no template "nope"`, `embed it with the prefix "all:"`)
	chart["web/templates/_helpers.tpl"] = ""
	if _, err = render(t.Context(), folder(chart), map[string]any{"x": "x"}, helm.Options{}); err == nil || len(err.Error()) > 200 {
		t.Errorf("got the error %v, want one without the hint", err)
	}
}

// Without its limit the parser would overflow the stack, which ends the process.
func TestADeepTemplateDoesNotEndNew(t *testing.T) {
	for name, text := range map[string]string{
		"blocks":      strings.Repeat("{{if 1}}", 2_000_000),
		"parentheses": "{{" + strings.Repeat("(", 16_000_000),
	} {
		chart := folder(map[string]string{"web/templates/a.yaml": text})
		g, err := helm.New(chart, "web", helm.Options{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		_, err = manifests.Generate(t.Context(), g, "ns", "app", nil)
		wantError(t, err, "web/templates/a.yaml: the template has more than")
	}
}

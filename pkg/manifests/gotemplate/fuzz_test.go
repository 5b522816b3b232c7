// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// FuzzGenerate renders whatever it is given. It must end in time, without a
// panic that was not expected, and give the same twice.
func FuzzGenerate(f *testing.F) {
	for _, seed := range []string{
		manifest("{{ .Values.a }}"), `{{ define "a" }}{{ template "a" . }}{{ end }}{{ include "a" . }}`, `{{ range until 9 }}{{ break }}{{ end }}`,
		`{{ tpl .Values.t . }}`, `{{ $d := dict }}{{ $_ := set $d "d" $d }}{{ $d }}`, `{{ block "x" . }}{{ end }}`, `{{ with $x := 1 }}{{ $x }}{{ else with 2 }}{{ end }}`,
		`{{ printf "%[2]*[1]d" 1 99999 }}`, `{{ (index .Values.l 0) | repeat 3 | nindent 2 }}`, `{{ merge (dict) .Values .Release }}`, `{{/* x */}}{{- nil | default 1 -}}`,
	} {
		f.Add(seed)
	}
	values := types.UnstructurableMap{"a": "b", "t": "{{ tpl .Values.t . }}", "l": []any{"x", int64(1), nil}}
	options := gotemplate.Options{Timeout: 5 * time.Second, Limits: manifests.TemplateLimits{Depth: 50, OutputBytes: 1 << 16, StringBytes: 1 << 16, Items: 1000, WorkBytes: 1 << 24}}
	f.Fuzz(func(t *testing.T, text string) {
		g, err := gotemplate.New(folder(map[string]string{"a.yaml": text}), ".", options)
		if err != nil {
			return
		}
		_, err = g.Generate(context.Background(), "ns", "app", values)
		var late *timeout.Error
		if errors.As(err, &late) && late.Busy {
			t.Errorf("%q: not even interrupted", text)
		}
		var p *types.PanicError
		if errors.As(err, &p) {
			t.Errorf("%q: %v\n%s", text, err, p.Stack)
		}
	})
}

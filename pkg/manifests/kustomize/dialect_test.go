// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestTheDialectOfAnotherRuntimeIsRefusedByName(t *testing.T) {
	const object = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"
	templates := kustomize.Options{Templates: &kustomize.Templates{}}
	for name, test := range map[string]struct {
		files   map[string]string
		folder  string
		options kustomize.Options
		want    []string // parts of the error; none means that it is built
	}{
		"a configuration": {map[string]string{"k/.component-config.yaml": "templateSuffix: .tpl"}, "k", kustomize.Options{},
			[]string{"k/.component-config.yaml: it is a file of SAP component-operator-runtime", "Options.Templates"}},
		"one in a folder below": {map[string]string{"k/sub/.component-config.yaml": ""}, "k", kustomize.Options{}, []string{"k/sub/.component-config.yaml: "}},
		"one elsewhere":         {map[string]string{"other/.component-config.yaml": ""}, "k", kustomize.Options{}, nil},
		"an ignore file":        {map[string]string{"k/.component-ignore": "*.md"}, "k", kustomize.Options{}, []string{"k/.component-ignore: ", ".corbelignore"}},
		"an ignore file that is named": {map[string]string{".component-ignore": "b.yaml", "b.yaml": "{{ no YAML"}, ".",
			kustomize.Options{IgnoreFile: ".component-ignore"}, nil},
		"both": {map[string]string{"k/.component-ignore": "", "k/.component-config.yaml": ""}, "k", kustomize.Options{},
			[]string{"k/.component-ignore: ", "k/.component-config.yaml: "}},
		"its functions": {map[string]string{"k/b.yaml": `{{ localLookup "v1" "Secret" "a" "b" }}`, "k/c.yaml": "{{ namespace }}", "k/d.yaml": "{{ bitwiseAnd 1 2 }}"}, "k", templates,
			[]string{`function "localLookup" not defined: templates for SAP component-operator-runtime have it`, "use .Namespace", "the option Functions"}},
		"a template that is none": {map[string]string{"k/b.yaml": "{{ if true }}\na: b\n{{ end }}"}, "k", kustomize.Options{}, []string{"k/b.yaml may be a template"}},
		"the functions for files": {map[string]string{"k/b.yaml": `{{ if existsFile "k/a.yaml" }}{{ readFile "k/c.txt" }}{{ end }}`, "k/c.txt": ""}, "k", templates, nil},
	} {
		t.Run(name, func(t *testing.T) {
			files := fstest.MapFS{test.folder + "/a.yaml": {Data: []byte(object)}}
			if test.folder == "." {
				files = fstest.MapFS{"a.yaml": {Data: []byte(object)}}
			}
			for name, text := range test.files {
				files[name] = &fstest.MapFile{Data: []byte(text)}
			}
			generator, err := kustomize.New(files, test.folder, test.options)
			if err == nil {
				_, err = generator.Generate(t.Context(), "default", "a", types.UnstructurableMap{})
			}
			if len(test.want) == 0 && err != nil {
				t.Errorf("got %v", err)
			}
			for _, part := range test.want {
				if err == nil || !strings.Contains(err.Error(), part) {
					t.Errorf("got %v, want %q", err, part)
				}
			}
		})
	}
}

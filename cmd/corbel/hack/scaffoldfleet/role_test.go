// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/corbel-run/corbel/test/check"
)

func TestARoleIsComparedWithWhatHelmRenders(t *testing.T) {
	const operator = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {template: {spec: {serviceAccountName: a}}}\n---\n" +
		"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: a}\nrules:\n"
	rule := func(group, resource string) string {
		return "- {apiGroups: ['" + group + "'], resources: [" + resource + "], verbs: [get, create, update, delete]}\n"
	}
	object := func(kind, metadata string) string {
		return "apiVersion: v1\nkind: " + kind + "\nmetadata:\n  name: a\n" + metadata
	}
	// The scan of the templates does not leave the object out, because a branch may leave the annotation out.
	const test = "  annotations:\n    {{- if not .Values.never }}\n    helm.sh/hook: test\n    {{- end }}\n"
	for name, test := range map[string]struct {
		rules, template string
		optional        []string
		failure         string
	}{
		"an applied kind":           {rule("", "secrets"), object("Secret", ""), nil, ""},
		"a kind of the folder ci":   {rule("", "secrets"), "{{ if .Values.ci }}\n" + object("Secret", "") + "{{ end }}", nil, ""},
		"a hook":                    {rule("", "pods"), object("Pod", "  annotations: {helm.sh/hook: 'test,pre-install'}\n"), nil, ""},
		"a kind that is off":        {rule("", "secrets"), "{{ if .Values.never }}\n" + object("Secret", "") + "{{ end }}", []string{"Secret (templates/a.yaml)"}, ""},
		"a test":                    {rule("", "pods"), object("Pod", test), nil, "the role has pods, which only tests in templates/a.yaml render"},
		"a kind of no template":     {rule("apps", "deployments"), object("Pod", ""), nil, "the role has deployments, and no template has it"},
		"what the operator reads":   {"- {apiGroups: [''], resources: [events], verbs: [list]}\n", object("Pod", ""), nil, ""},
		"a chart that needs values": {rule("", "pods"), object("Pod", "  labels: {a: {{ required \"no\" .Values.test }}}\n"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			for file, text := range map[string]string{
				"project/chart/Chart.yaml": "apiVersion: v2\nname: a\nversion: 1.0.0\n", "project/chart/templates/a.yaml": test.template,
				"project/deploy/Chart.yaml": "apiVersion: v2\nname: a-operator\nversion: 1.0.0\n", "project/deploy/templates/a.yaml": operator + test.rules,
				"project/samples/sample.yaml": "spec: {values: {test: always}}\n", "chart/ci/values.yaml": "ci: true\n",
			} {
				name := filepath.Join(folder, file)
				check.NoError(t, os.MkdirAll(filepath.Dir(name), 0o755))
				check.NoError(t, os.WriteFile(name, []byte(text), 0o644))
			}
			p := &project{folder: filepath.Join(folder, "project"), chart: chart{folder: filepath.Join(folder, "chart")}}
			optional, err := p.compareRole(t.Context())
			check.EqualNamed(t, "optional", test.optional, optional, cmpopts.EquateEmpty())
			if test.failure == "" {
				check.NoError(t, err)
			} else {
				check.Fails(t, err, test.failure)
			}
		})
	}
}

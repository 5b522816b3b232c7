// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestTheFilesOfAProjectFollowFromItsRights(t *testing.T) {
	for name, test := range map[string]struct {
		contents contents
		has      map[string][]string // parts of files
		lacks    map[string][]string
	}{
		"rights in the cluster": {
			contents{HasPatches: true},
			map[string][]string{
				"main.go":              {"MissingNamespacesPolicyDoNotCreate"},
				"api/v1alpha1/shop.go": {"component.PatchesSpec"},
			},
			map[string][]string{"operator_test.go": {"Namespaced:", "Prerequisites"}, "deploy/values.yaml": {"deployers"}, "README.md": {"Roles or bindings"}},
		},
		"namespaces that are created": {
			contents{HasPatches: true, CreatesNamespaces: true}, nil,
			map[string][]string{"main.go": {"MissingNamespacesPolicy", "pkg/reconciler"}},
		},
		"rights in its namespace": {
			contents{HasPatches: true, Options: Options{Namespaced: true}},
			map[string][]string{"main.go": {"Namespaced: true"}, "operator_test.go": {"Namespaced: true", "TestRights"}},
			map[string][]string{"main.go": {"MissingNamespacesPolicy"}},
		},
		"accounts that write": {
			contents{HasPatches: true, Options: Options{Impersonate: true}},
			map[string][]string{
				"main.go":          {`DefaultServiceAccount: new("deployer")`},
				"operator_test.go": {`deployer("shop-operator-deployer")`}, "deploy/values.yaml": {"deployers: [default]"}, "README.md": {"create rolebinding shop-operator-deployer"},
			},
			map[string][]string{"operator_test.go": {"cluster-admin"}},
		},
		"an account in its namespace": {
			contents{HasPatches: true, Options: Options{Namespaced: true, Impersonate: true}},
			map[string][]string{"operator_test.go": {"Namespaced: true", `deployer("cluster-admin")`}, "README.md": {"The chart creates it"}},
			map[string][]string{"deploy/values.yaml": {"deployers"}},
		},
		"roles": {
			contents{Escalates: true},
			map[string][]string{"README.md": {"So the spec has no field `patches`"}},
			map[string][]string{"api/v1alpha1/shop.go": {"PatchesSpec"}},
		},
		"roles, and patches by request": {
			contents{Escalates: true, HasPatches: true},
			map[string][]string{"README.md": {"can get any right"}, "api/v1alpha1/shop.go": {"PatchesSpec"}},
			map[string][]string{"README.md": {"So the spec has no field"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			c := test.contents
			c.Name, c.Kind, c.Group, c.Form, c.Folder = "shop-operator", "Shop", "shop.example.com", FormChart, "chart"
			if err := c.validate(); err != nil {
				t.Fatal(err)
			}
			files, err := c.files()
			if err != nil {
				t.Fatal(err)
			}
			for file, parts := range test.has {
				for _, part := range parts {
					if !strings.Contains(string(files[file]), part) {
						t.Errorf("%s lacks %q:\n%s", file, part, files[file])
					}
				}
			}
			for file, parts := range test.lacks {
				for _, part := range parts {
					if strings.Contains(string(files[file]), part) {
						t.Errorf("%s has %q:\n%s", file, part, files[file])
					}
				}
			}
		})
	}
}

func TestWhatIsLearnedOfTheRightsOfAChart(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	for name, test := range map[string]struct {
		template                     string
		options                      Options
		escalates, createsNamespaces bool
		note                         string
		failure                      string
	}{
		"an object":                   {template: config},
		"a role in a branch":          {template: config + "{{ if .Values.rbac }}\n---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\n{{ end }}", escalates: true, note: "the spec has no field patches"},
		"a role, with patches":        {template: "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: a}\n", options: Options{Patches: true}, escalates: true, note: "can give themselves any right"},
		"another namespace":           {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n", createsNamespaces: true},
		"a namespace and its content": {template: "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n"},
		"a kind without a namespace":  {template: "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", options: Options{Impersonate: true}, failure: "--impersonate: objects of these kinds have no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := t.TempDir()
			for file, text := range map[string]string{"Chart.yaml": "{apiVersion: v2, name: shop, version: 1.0.0}", "templates/a.yaml": test.template} {
				if err := writeFile(filepath.Join(stage, "chart", file), []byte(text)); err != nil {
					t.Fatal(err)
				}
			}
			o := test.options
			o.Name, o.Kind, o.Group, o.Form = "shop-operator", "Shop", "shop.example.com", FormChart
			if err := o.validate(); err != nil {
				t.Fatal(err)
			}
			learned, err := learn(t.Context(), &o, stage, nil, nil)
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("got %v, want %q", err, test.failure)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if learned.escalates != test.escalates || learned.createsNamespaces != test.createsNamespaces {
				t.Errorf("escalates %t, creates namespaces %t", learned.escalates, learned.createsNamespaces)
			}
			if notes := strings.Join(learned.notes, "\n"); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, test.note)
			}
			if creates := strings.Contains(learned.rights, "those that do not exist are created"); creates != test.createsNamespaces {
				t.Errorf("the rules:\n%s", learned.rights)
			}
		})
	}
}

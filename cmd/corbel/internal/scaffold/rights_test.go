// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/check"
)

func TestTheFilesOfAProjectFollowFromItsRights(t *testing.T) {
	for name, test := range map[string]struct {
		contents contents
		has      map[string][]string // parts of files
		lacks    map[string][]string
	}{
		"files for its operation, which test/ops tests": {
			contents{},
			map[string][]string{
				"ops/alerts.yaml": {`controller="shop.shop.example.com"`}, "ops/dashboard.json": {"shop.shop.example.com"},
				"ops/argocd-health.lua": {"Progressing"}, "ops/kube-state-metrics.yaml": {"kind: Shop"},
			},
			map[string][]string{
				"ops/alerts.yaml": {"[["}, "ops/dashboard.json": {"[["}, "ops/argocd-health.lua": {"[["}, "ops/kube-state-metrics.yaml": {"[["},
			},
		},
		"rights in the cluster": {
			contents{HasPatches: true},
			map[string][]string{
				"main.go":              {"MissingNamespacesPolicyDoNotCreate"},
				"api/v1alpha1/shop.go": {"component.PatchesSpec"},
			},
			map[string][]string{"operator_test.go": {"Namespaced:", "deployer("}, "deploy/values.yaml": {"deployers"}, "README.md": {"Roles or bindings", "There can be one"}},
		},
		"one component only": {
			contents{HasPatches: true, Fixed: []string{"PriorityClass a", "ClusterRole b"}},
			map[string][]string{"README.md": {"\n\n**There can be one Shop only**, because these objects have the same name for each: PriorityClass a, ClusterRole b."}}, nil,
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
			check.NoError(t, c.validate())
			files := check.Must(c.files())(t)
			for file, text := range files {
				if strings.Contains(string(text), "\n\n\n") || strings.HasPrefix(string(text), "\n") {
					t.Errorf("%s has an empty line too many:\n%s", file, text)
				}
			}
			for file, parts := range test.has {
				t.Run(file, func(t *testing.T) { check.Contains(t, string(files[file]), parts...) })
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

func TestThePodsOfAnOperatorRunWhereItsValuesSay(t *testing.T) {
	o := Options{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Form: FormGo}
	list := func(entry map[string]any) []any { return []any{entry} }
	values := map[string]any{
		"imagePullSecrets": list(map[string]any{"name": "registry"}), "nodeSelector": map[string]any{"disk": "ssd"}, "tolerations": list(map[string]any{"operator": "Exists"}),
		"affinity": map[string]any{"nodeAffinity": map[string]any{}}, "topologySpreadConstraints": list(map[string]any{"topologyKey": "zone"}), "priorityClassName": "high",
	}
	for title, given := range map[string]map[string]any{"by default": {}, "with values": values} {
		pods := 0
		for _, object := range installed(t, o, given) {
			spec, isPod, _ := unstructured.NestedMap(asUnstructured(object).Object, "spec", "template", "spec")
			if !isPod {
				continue
			}
			pods++
			for field := range values {
				check.EqualNamed(t, title+": "+asUnstructured(object).GetKind()+" "+field, given[field], spec[field])
			}
		}
		check.SameNamed(t, title+": the Deployment, and the Job of helm uninstall", 2, pods)
	}
	annotated := installed(t, o, map[string]any{"podAnnotations": map[string]any{"a": "b", "prometheus.io/scrape": "false"}})
	at := slices.IndexFunc(annotated, func(object client.Object) bool { return object.GetObjectKind().GroupVersionKind().Kind == "Deployment" })
	annotations, _, _ := unstructured.NestedStringMap(asUnstructured(annotated[at]).Object, "spec", "template", "metadata", "annotations")
	check.Equal(t, map[string]string{"a": "b", "prometheus.io/scrape": "false", "prometheus.io/port": "8080"}, annotations)
}

// learnFrom learns a source, given by names and texts of files. own are the values of an existing project.
func learnFrom(t *testing.T, o Options, own map[string]any, files ...string) (learned, error) {
	t.Helper()
	if o.Form == FormChart {
		files = append(files, "Chart.yaml", chartHead)
	}
	stage := t.TempDir()
	writeFiles(t, filepath.Join(stage, folders[o.Form]), files...)
	o.Name, o.Kind, o.Group = "shop-operator", "Shop", "shop.example.com"
	check.NoError(t, o.validate())
	return learn(t.Context(), &o, stage, nil, own, true)
}

func TestWhatIsLearnedOfTheRightsOfAChart(t *testing.T) {
	const config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	const one = "there can be one component only, because these objects have the same name for each component: "
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
		"another namespace":           {template: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n", createsNamespaces: true, note: one + "ConfigMap other/a (1 in all)"},
		"a namespace and its content": {template: "apiVersion: v1\nkind: Namespace\nmetadata: {name: other}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: other}\n", note: one + "Namespace other, ConfigMap other/a (2 in all)"},
		"a kind without a namespace":  {template: "apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n", options: Options{Impersonate: true}, failure: "--impersonate: objects of these kinds have no namespace"},
	} {
		t.Run(name, func(t *testing.T) {
			test.options.Form = FormChart
			learned, err := learnFrom(t, test.options, nil, "templates/a.yaml", test.template)
			check.NoError(t, err)
			rights, err := rightsOf([]*part{{learned: learned}})
			if test.failure != "" {
				if err == nil || !strings.Contains(err.Error(), test.failure) {
					t.Errorf("got %v, want %q", err, test.failure)
				}
				return
			}
			check.NoError(t, err)
			if learned.escalates != test.escalates || learned.createsNamespaces != test.createsNamespaces {
				t.Errorf("escalates %t, creates namespaces %t", learned.escalates, learned.createsNamespaces)
			}
			if notes := strings.Join(learned.notes, "\n"); !strings.Contains(notes, test.note) || test.note == "" && notes != "" {
				t.Errorf("the notes are %q, want %q", notes, test.note)
			}
			if creates := strings.Contains(string(rights), "those that do not exist are created"); creates != test.createsNamespaces {
				t.Errorf("the rules:\n%s", rights)
			}
		})
	}
}

// Objects without a namespace, or in one that the source names, serve one component only if their names do not depend on it.
func TestAnOperatorThatCanHaveOneComponentOnlyIsNamed(t *testing.T) {
	object := func(apiVersion, kind, metadata string) string {
		return "---\napiVersion: " + apiVersion + "\nkind: " + kind + "\nmetadata: {" + metadata + "}\n"
	}
	definition := func(plural, scope string) string {
		return object("apiextensions.k8s.io/v1", "CustomResourceDefinition", "name: "+plural+".a.example.com") +
			"spec: {group: a.example.com, scope: " + scope + ", names: {plural: " + plural + ", kind: Foo}, versions: [{name: v1, served: true, storage: true}]}\n"
	}
	class := func(name string) string { return object("scheduling.k8s.io/v1", "PriorityClass", "name: "+name) }
	const release, ofRelease = "{{ .Release.Name }}", "namespace: '{{ .Release.Namespace }}'"
	for name, test := range map[string]struct {
		form  Form
		files []string
		own   map[string]any // the values of an existing project
		want  string
	}{
		"names of the release":            {FormChart, []string{"templates/a.yaml", class("a-"+release) + object("v1", "ConfigMap", "name: a, "+ofRelease) + object("v1", "Secret", "name: a")}, nil, ""},
		"a name of the chart":             {FormChart, []string{"templates/a.yaml", class("a") + class("b-"+release)}, nil, "PriorityClass a (1 in all)"},
		"a name, with the namespace":      {FormChart, []string{"templates/a.yaml", object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a, "+ofRelease)}, nil, "ClusterRole a (1 in all)"},
		"more than three":                 {FormChart, []string{"templates/a.yaml", class("a") + class("b") + class("c") + class("d")}, nil, "PriorityClass a, PriorityClass b, PriorityClass c (4 in all)"},
		"a namespace of the chart":        {FormChart, []string{"templates/a.yaml", object("v1", "ConfigMap", "name: a, namespace: default")}, nil, "ConfigMap default/a (1 in all)"},
		"a name in another namespace":     {FormChart, []string{"templates/a.yaml", object("v1", "ConfigMap", "name: "+release+", namespace: kube-system")}, nil, ""},
		"the folder crds":                 {FormChart, []string{"crds/a.yaml", definition("foos", "Namespaced"), "templates/a.yaml", object("a.example.com/v1", "Foo", "name: a")}, nil, ""},
		"an instance without a namespace": {FormChart, []string{"crds/a.yaml", definition("foos", "Cluster"), "templates/a.yaml", object("a.example.com/v1", "Foo", "name: a")}, nil, "Foo a (1 in all)"},
		"a definition in a template":      {FormChart, []string{"templates/a.yaml", definition("foos", "Namespaced")}, nil, "CustomResourceDefinition foos.a.example.com (1 in all)"},
		"a hook":                          {FormChart, []string{"templates/a.yaml", object("rbac.authorization.k8s.io/v1", "ClusterRole", "name: a, annotations: {helm.sh/hook: pre-install}")}, nil, "ClusterRole a (1 in all)"},
		"a chart that accepts one name":   {FormChart, []string{"templates/a.yaml", "{{ if ne .Release.Namespace \"default\" }}{{ fail \"no\" }}{{ end }}\n" + class("a")}, nil, ""},
		"a name that a user has chosen":   {FormChart, []string{"templates/a.yaml", class("{{ .Values.name | default .Release.Name }}")}, map[string]any{"name": "mine"}, ""},
		"a chart that needs values":       {FormChart, []string{"templates/a.yaml", class("{{ required \"no\" .Values.name }}")}, map[string]any{"name": "mine"}, "PriorityClass mine (1 in all)"},
		"plain manifests":                 {FormYAML, []string{"a.yaml", class("a") + object("v1", "ConfigMap", "name: a")}, nil, "PriorityClass a (1 in all)"},
		"a kustomization":                 {FormKustomize, []string{"kustomization.yaml", "resources: [a.yaml]", "a.yaml", class("a")}, nil, "PriorityClass a (1 in all)"},
	} {
		t.Run(name, func(t *testing.T) {
			learned := check.Must(learnFrom(t, Options{Form: test.form}, test.own, test.files...))(t)
			notes := slices.DeleteFunc(learned.notes, func(note string) bool { return !strings.HasPrefix(note, "there can be one component only") })
			if len(notes) == 0 && test.want == "" {
				return
			}
			if len(notes) != 1 || test.want == "" || !strings.HasSuffix(notes[0], "for each component: "+test.want) {
				t.Errorf("got %q, want %q", notes, test.want)
			}
		})
	}
}

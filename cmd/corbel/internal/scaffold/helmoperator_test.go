// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

const formerOperator = "testdata/helm-operator"

// projectOf makes a project of a Helm operator without running the go command.
func projectOf(t *testing.T, folder string) (project string, report Report) {
	t.Helper()
	project = filepath.Join(t.TempDir(), "backend-operator")
	source := Source{Form: FormOperator, Path: folder}
	return project, check.Must(Create(t.Context(), Options{}, source, Corbel{Version: "v0.0.0"}, project, Toolchain{Go: "true"}))(t)
}

// copied returns a copy of the operator in testdata, with other texts in its files: each file is followed by a text and another one. The
// file is removed if the text is empty.
func copied(t *testing.T, changes ...string) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "operator")
	check.NoError(t, os.CopyFS(folder, os.DirFS(formerOperator)))
	for i := 0; i < len(changes); i += 3 {
		name := filepath.Join(folder, changes[i])
		if changes[i+1] == "" {
			check.NoError(t, os.Remove(name))
			continue
		}
		text := string(check.Must(os.ReadFile(name))(t))
		if !strings.Contains(text, changes[i+1]) {
			t.Fatalf("%s does not have %q", name, changes[i+1])
		}
		check.NoError(t, os.WriteFile(name, []byte(strings.ReplaceAll(text, changes[i+1], changes[i+2])), 0o644))
	}
	return folder
}

func TestAProjectOfAHelmOperatorHasItsKinds(t *testing.T) {
	project, _ := projectOf(t, formerOperator)
	for name, parts := range map[string][]string{
		"main.go": {`operator.MainOf("backend-operator", cache.Options(definitions), site.Options(definitions))`},
		"cache/api/v1alpha1/cache.go": {
			"path=caches,singular=cache,shortName=cc,categories=corbel;all\n", "// +kubebuilder:storageversion\n", "\tSpec *apiextensionsv1.JSON `json:\"spec,omitempty\"`\n",
		},
		"cache/api/v1/groupversion.go": {`Group: "data.example.com", Version: "v1"`},
		"cache/operator.go": {
			`Name: "cache.data.example.com"`, "AdoptHelmOperator: true", `MatchLabels: map[string]string{"tier": "backend"}`, `{Key: "phase", Operator: "NotIn", Values: []string{"trial"}}`,
			`overrideValues = map[string]interface{}{"image": map[string]interface{}{"repository": "registry.example.com/cache"}, "labels": "team=data"}`, "KeepIntegers: true",
		},
		"cache/samples/cache.yaml": {"labels:\n    tier: backend\n  name: sample\nspec:\n  maxBytes: 1000000\n"},
		// The spec is put over values.yaml, and overrideValues are put over the spec. The number is printed as the Helm operator prints it.
		"cache/testdata/sample.golden":    {"replicas: 2\n", "--max-bytes=1000000\n", "image: registry.example.com/cache:7\n"},
		"site/operator.go":                {`Name: "site.web.example.com"`, "MaxConcurrentReconciles: new(3)", `return helm.New(files, "chart", chartOptions)`},
		"site/samples/site.yaml":          {"spec: {}\n"},
		"site/testdata/sample.golden":     {"title: Welcome\n"},
		"deploy/templates/rbac.yaml":      {`resources: ["caches"]`, `resources: ["caches/status"]`, `resources: ["sites"]`, `resources: ["deployments"]`, `resources: ["configmaps"]`},
		"deploy/templates/uninstall.yaml": {`resources: [caches]`, `resources: [sites]`},
		"deploy/templates/deletion.yaml":  {"name: backend-operator-cache-deletion\n", `annotations[?"site.web.example.com/confirm-deletion"]`},
		"Makefile":                        {"paths=./cache/api/... paths=./site/api/... ", "-run TestTheGoldenFilesAreRendered ./cache ./site -update"},
		"cache/ops/alerts.yaml":           {`controller="cache.data.example.com"`},
		"README.md": {
			"go run . site plan --all", "kubectl get caches.data.example.com,sites.web.example.com", "status.adoptedRelease",
			"- Cache: `overrideValues` of watches.yaml sets `image.tag`", "- Cache: `reconcilePeriod` ", "- Cache: `watchDependentResources` ", "- Site: `colour` of watches.yaml is not known.",
			"- Cache: the fields of the spec in its CustomResourceDefinition", "`config/rbac/cache_editor_role.yaml`",
		},
	} {
		check.Contains(t, read(t, project, name), parts...)
	}
	for _, absent := range []string{"CACHE_TAG", "docker.io/cache", "storageversion"} {
		for _, name := range []string{"README.md", "cache/operator.go", "cache/api/v1/cache.go"} {
			if strings.Contains(read(t, project, name), absent) {
				t.Errorf("%s has %s", name, absent)
			}
		}
	}
	check.EqualNamed(t, "folders of kinds", []string{"cache", "site"}, KindFolders(project))
	changed, err := WriteFieldTable(project)
	if changed || err != nil {
		t.Errorf("the table of fields: changed %t, error %v", changed, err)
	}
	check.Fails(t, check.ErrorOf(Update(t.Context(), project, Source{}, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"})), "a project with several kinds is not updated: replace the folder chart of a kind")
}

func TestAProjectOfAHelmOperatorWithOneKindIsUpdatedByItsChart(t *testing.T) {
	folder := copied(t)
	check.NoError(t, os.RemoveAll(filepath.Join(folder, "config", "rbac")))
	check.NoError(t, os.WriteFile(filepath.Join(folder, "watches.yaml"), []byte("- group: web.example.com\n  version: v1alpha1\n  kind: Site\n  chart: helm-charts/site\n"), 0o644))
	project, _ := projectOf(t, folder)
	check.Contains(t, read(t, project, "main.go"), "operator.Main(options())", `Name: "web.example.com"`, "AdoptHelmOperator: true")
	check.Contains(t, read(t, project, "api/v1alpha1/site.go"), "path=sites,singular=site,categories=corbel\n")
	check.Contains(t, read(t, project, "README.md"), "All parts of the Helm operator are carried over.")
	check.Contains(t, read(t, project, "samples/site.yaml"), "spec: {}\n")
	update := func(source Source) []string {
		return check.Must(Update(t.Context(), project, source, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"}))(t).Files
	}
	check.EqualNamed(t, "changed by an update without a source", []string(nil), update(Source{}))
	writeFiles(t, folder, "helm-charts/site/values.yaml", "title: Hello\n")
	check.EqualNamed(t, "changed by a newer chart", []string{"chart/values.yaml", goldenFile}, update(Source{Form: FormChart, Path: filepath.Join(folder, "helm-charts", "site")}))
}

func TestAllMistakesOfAHelmOperatorAreListed(t *testing.T) {
	const cacheCRD, siteCRD = "config/crd/bases/data.example.com_caches.yaml", "config/crd/bases/web.example.com_sites.yaml"
	for name, test := range map[string]struct {
		changes []string
		want    []string
	}{
		"no watches.yaml":            {[]string{"watches.yaml", "", ""}, []string{"is no Helm operator: it has no watches.yaml, and its PROJECT has the layout helm.sdk.operatorframework.io/v1"}},
		"neither file":               {[]string{"watches.yaml", "", "", "PROJECT", "", ""}, []string{"has no watches.yaml: name the folder of the project, not that of the chart"}},
		"no list":                    {[]string{"watches.yaml", "- group", "  group"}, []string{"watches.yaml is no list of kinds and charts"}},
		"an Ansible operator":        {[]string{"watches.yaml", "chart: helm-charts/cache", "playbook: a.yaml"}, []string{"watches.yaml, entry 1: it is an entry of an Ansible operator"}},
		"an entry without a chart":   {[]string{"watches.yaml", "chart: helm-charts/cache", "colour: red"}, []string{"watches.yaml, entry 1 lacks chart"}},
		"a text in place of a label": {[]string{"watches.yaml", "{tier: backend}", "backend"}, []string{"watches.yaml, entry 1: "}},
		"a selector that is none":    {[]string{"watches.yaml", "NotIn", "Never"}, []string{"watches.yaml, kind Cache: selector: "}},
		"an override that is none":   {[]string{"watches.yaml", "labels: team", "labels[x]: team"}, []string{"watches.yaml, kind Cache: overrideValues, labels[x]: "}},
		"a kind twice, a chart that is missing and a definition that is missing": {
			[]string{"watches.yaml", "kind: Site", "kind: cache", "watches.yaml", "helm-charts/cache", "charts/store", cacheCRD, "", ""},
			[]string{"entry 2: the kind cache is there twice", "kind Cache: there is no chart in ", "put the chart charts/store there", "there is no CustomResourceDefinition of Cache.data.example.com"},
		},
		"another version and another scope": {
			[]string{"watches.yaml", "v1alpha1", "v3", siteCRD, "Namespaced", "Cluster"},
			[]string{"kind Site: watches.yaml has the version v3, which its CustomResourceDefinition does not serve", "kind Site: the scope of its CustomResourceDefinition is Cluster"},
		},
		"a kind and a group that Corbel cannot have": {
			[]string{"watches.yaml", "kind: Site", "kind: SiteList", siteCRD, "kind: Site", "kind: SiteList", "watches.yaml", "web.example.com", "web", siteCRD, "web.example.com", "web"},
			[]string{`kind "SiteList": must not end in List`, `group "web": must be a domain`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			project := filepath.Join(t.TempDir(), "backend-operator")
			_, err := Create(t.Context(), Options{}, Source{Form: FormOperator, Path: copied(t, test.changes...)}, Corbel{}, project, Toolchain{Go: "false"})
			check.Fails(t, err, test.want...)
			if _, err := os.Stat(project); err == nil {
				t.Error("the project was made")
			}
		})
	}
}

func TestTheGroupOfAHelmOperatorMayBeReservedForKubernetes(t *testing.T) {
	project, _ := projectOf(t, copied(t, "watches.yaml", "web.example.com", "web.k8s.io", "config/crd/bases/web.example.com_sites.yaml", "web.example.com", "web.k8s.io"))
	check.Contains(t, read(t, project, "site/api/v1alpha1/site.go"), `// +kubebuilder:metadata:annotations="api-approved.kubernetes.io=unapproved, the kind of a Helm operator"`)
}

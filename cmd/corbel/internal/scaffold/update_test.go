// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

const chartHead = "apiVersion: v2\nname: shop\nversion: 1.0.0\n"

// configMap is a template that asks for a value.
const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: \"{{ required \"the greeting is missing\" .Values.greeting }}\"}\n"

// newProject makes a project of a chart, given by names and texts of files. Nothing is compiled.
func newProject(t *testing.T, o Options, chart ...string) (project string, report Report) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "shop")
	writeFiles(t, folder, chart...)
	project = filepath.Join(t.TempDir(), "shop-operator")
	o.Kind, o.Group = "Shop", "shop.example.com"
	report = check.Must(Create(t.Context(), o, Source{Form: FormChart, Path: folder}, Corbel{Version: "v0.0.0"}, project, Toolchain{Go: "true"}))(t)
	return project, report
}

// updateProject takes over a chart; without one, the last one.
func updateProject(t *testing.T, project string, chart ...string) (Report, error) {
	t.Helper()
	source := Source{}
	if len(chart) > 0 {
		source = Source{Form: FormChart, Path: filepath.Join(t.TempDir(), "shop")}
		writeFiles(t, source.Path, chart...)
	}
	return Update(t.Context(), project, source, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"})
}

func read(t *testing.T, elements ...string) string {
	t.Helper()
	text := check.Must(os.ReadFile(filepath.Join(elements...)))(t)
	return string(text)
}

func TestAnUpdateKeepsWhatIsTheAuthors(t *testing.T) {
	project, _ := newProject(t, Options{}, "Chart.yaml", chartHead, "values.yaml", "greeting: hello\nsize: 1\nreplicaCount: 1\n", "templates/a.yaml", configMap,
		"templates/old/dropped.yaml", "", "templates/edited.yaml", "")
	writeFiles(t, project, "own.go", "package main\n", "chart/values.yaml", "greeting: mine\nsize: 1\nreplicaCount: 1\n", "chart/templates/edited.yaml", "# mine\n")
	main := read(t, project, "main.go") + "\n// My notes.\n"
	writeFiles(t, project, "main.go", main)
	check.NoError(t, os.Remove(filepath.Join(project, "Dockerfile")))
	if report, err := updateProject(t, project); err != nil || len(report.Files)+len(report.Conflicts) > 0 {
		t.Fatalf("without a newer source: %+v, %v", report, err)
	}
	newer := []string{"Chart.yaml", chartHead, "values.yaml", "greeting: hello\nsize: 2\nreplicaCount: 1\n", "templates/a.yaml", configMap, "templates/new.yaml", ""}
	report := check.Must(updateProject(t, project, newer...))(t)
	want := Report{
		Files:     []string{"api/v1alpha1/values.go", "chart/templates/new.yaml", "chart/templates/old/dropped.yaml", "chart/values.yaml", "samples/shop.yaml"},
		Conflicts: []string{"chart/templates/edited.yaml (it stays as it is)", "chart/values.yaml"},
	}
	check.Equal(t, want, report)
	for name, want := range map[string]string{
		"main.go": main, "own.go": "package main\n", "chart/templates/edited.yaml": "# mine\n",
		"chart/values.yaml": "<<<<<<< yours\ngreeting: mine\nsize: 1\n=======\ngreeting: hello\nsize: 2\n>>>>>>> update\nreplicaCount: 1\n",
	} {
		check.SameNamed(t, name, want, read(t, project, name))
	}
	for _, name := range []string{"Dockerfile", "chart/templates/old"} {
		if _, err := os.Stat(filepath.Join(project, name)); !os.IsNotExist(err) {
			t.Errorf("%s: %v", name, err)
		}
	}
	before := read(t, project, ".corbel/base.tgz")
	check.Fails(t, check.ErrorOf(updateProject(t, project, newer...)), "conflicts of the last update are not resolved", "chart/values.yaml")
	check.SameNamed(t, "a refused update has changed the record", before, read(t, project, ".corbel/base.tgz"))
	writeFiles(t, project, "chart/values.yaml", "greeting: mine\nsize: 2\nreplicaCount: 1\n")
	if report, err := updateProject(t, project, newer...); err != nil || len(report.Conflicts) > 0 {
		t.Errorf("after the conflicts were resolved: %+v, %v", report, err)
	}
}

// The golden file follows from the chart and the sample. It is merged only if the author has made something else of it.
func TestAnUpdateRendersTheGoldenFileAgain(t *testing.T) {
	chart := func(sign string) []string {
		return []string{"Chart.yaml", chartHead, "values.yaml", "greeting: hello\n", "templates/a.yaml", strings.ReplaceAll(configMap, "}}\"", "}}"+sign+"\"")}
	}
	rendered := func(greeting string) string {
		return "apiVersion: v1\ndata:\n  a: " + greeting + "\nkind: ConfigMap\nmetadata:\n  name: a\n"
	}
	const sample = "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: {name: sample}\nspec: {timeout: 5m, values: {greeting: mine}}\n"
	for name, test := range map[string]struct {
		sample, golden string // of the author
		want           string
		conflicts      []string
	}{
		"no change":                   {"", rendered("hello"), rendered("hello!"), nil},
		"another sample":              {sample, rendered("mine"), rendered("mine!"), nil},
		"another sample, and no file": {sample, "", "", nil},
		"what only the author renders": {
			sample, rendered("mine (transformed)"), "apiVersion: v1\ndata:\n<<<<<<< yours\n  a: mine (transformed)\n=======\n  a: hello!\n>>>>>>> update\nkind: ConfigMap\nmetadata:\n  name: a\n",
			[]string{goldenFile},
		},
	} {
		t.Run(name, func(t *testing.T) {
			project, _ := newProject(t, Options{}, chart("")...)
			check.SameNamed(t, "the golden file of a new project", rendered("hello"), read(t, project, goldenFile))
			if test.sample != "" {
				writeFiles(t, project, "samples/shop.yaml", test.sample, goldenFile, test.golden)
			}
			if test.golden == "" {
				check.NoError(t, os.Remove(filepath.Join(project, goldenFile)))
			}
			report := check.Must(updateProject(t, project, chart("!")...))(t)
			got, _ := os.ReadFile(filepath.Join(project, goldenFile))
			check.SameNamed(t, "the golden file", test.want, string(got))
			check.EqualNamed(t, "conflicts", test.conflicts, report.Conflicts)
			if changed := slices.Contains(report.Files, goldenFile); changed != (test.want != "") {
				t.Errorf("the files that changed are %q", report.Files)
			}
		})
	}
}

func TestAnUpdateTypesTheSameValues(t *testing.T) {
	project, _ := newProject(t, Options{}, "Chart.yaml", chartHead, "values.yaml", "greeting: a\nreplicaCount: 1\nimage: {repository: a, tag: b}\nservice: {type: ClusterIP}\n", "templates/a.yaml", configMap)
	fields := func() []string {
		o := check.Must(readRecord(project))(t)
		return o.Fields
	}
	check.Equal(t, []string{"greeting", "replicaCount", "image.repository", "image.tag", "service.type"}, fields())
	report, err := updateProject(t, project, "Chart.yaml", chartHead, "values.yaml", "greeting: a\nreplicaCount: auto\nimage: {repository: a}\nservice: {type: ClusterIP}\nautoscaling: {enabled: true}\n", "templates/a.yaml", configMap)
	if err != nil || len(report.Conflicts) > 0 {
		t.Fatalf("%+v, %v", report, err)
	}
	want := []string{
		"the chart has no value image.tag any more: the field is removed from the spec, and components lose what they have set",
		"the type of the value replicaCount changes from Integer to String: components that have set it may be refused",
	}
	check.Equal(t, want, report.Notes)
	check.Equal(t, []string{"greeting", "replicaCount", "image.repository", "service.type"}, fields())
	if text := read(t, project, "api/v1alpha1/values.go"); strings.Contains(text, "Tag") || strings.Contains(text, "Autoscaling") || !strings.Contains(text, "ReplicaCount *string") {
		t.Errorf("the types are\n%s", text)
	}
	if _, err := updateProject(t, project, "Chart.yaml", chartHead, "values.yaml", "other: a\n", "templates/a.yaml", strings.ReplaceAll(configMap, "greeting", "other")); err != nil || len(fields()) > 0 {
		t.Errorf("without any of them: %v, %v", fields(), err)
	}
}

func TestTheSampleOfAChartThatNeedsValues(t *testing.T) {
	spec := func(project string) (object struct {
		Spec map[string]any `json:"spec"`
	}) {
		check.NoError(t, yaml.Unmarshal([]byte(read(t, project, "samples/shop.yaml")), &object))
		return object
	}
	t.Run("values of its folder ci, which Helm ignores", func(t *testing.T) {
		project, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/a.yaml", configMap, ".helmignore", "ci/\n", "ci/deep/good-values.yaml", "greeting: hello\n", "ci/a.txt", "x", "ci/bad.yaml", "- x")
		if diff := cmp.Diff(map[string]any{"values": map[string]any{"greeting": "hello"}}, spec(project).Spec); diff != "" || len(report.Notes) > 0 {
			t.Errorf("notes %v, -want +got:\n%s", report.Notes, diff)
		}
		if _, err := os.Stat(filepath.Join(project, "chart", "ci")); err == nil {
			t.Error("the folder ci is in the project")
		}
		// It is not known any more what was in the folder.
		before := read(t, project, "samples/shop.yaml")
		report, err := updateProject(t, project)
		if err != nil || len(report.Files)+len(report.Notes) > 0 || read(t, project, "samples/shop.yaml") != before {
			t.Errorf("%+v, %v", report, err)
		}
	})
	t.Run("values of its folder ci, and the author has another sample", func(t *testing.T) {
		project, _ := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/a.yaml", configMap, "values.yaml", "greeting: hello\n")
		mine := "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: {name: sample}\nspec: {values: {greeting: mine}}\n"
		writeFiles(t, project, "samples/shop.yaml", mine, goldenFile, "mine")
		report := check.Must(updateProject(t, project, "Chart.yaml", chartHead, "templates/a.yaml", configMap, "values.yaml", "greeting: \"\"\n", "ci/values.yaml", "greeting: ci\n"))(t)
		check.EqualNamed(t, "conflicts", []string(nil), report.Conflicts)
		check.SameNamed(t, "the sample", mine, read(t, project, "samples/shop.yaml"))
		check.SameNamed(t, "the golden file", "mine", read(t, project, goldenFile))
	})
	t.Run("nothing", func(t *testing.T) {
		project, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/a.yaml", configMap)
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "fill in the spec of samples/shop.yaml") || !strings.Contains(report.Notes[0], "the greeting is missing") {
			t.Errorf("got the notes %q", report.Notes)
		}
		text := read(t, project, "samples/shop.yaml")
		if !strings.HasPrefix(text, "# Fill in the spec; the chart cannot be rendered without: ") || !strings.Contains(text, "the greeting is missing") {
			t.Errorf("the sample is\n%s", text)
		}
		filled := "apiVersion: shop.example.com/v1alpha1\nkind: Shop\nmetadata: {name: sample}\nspec: {values: {greeting: hello}}\n"
		writeFiles(t, project, "samples/shop.yaml", filled, goldenFile, "mine")
		report, err := updateProject(t, project, "Chart.yaml", chartHead, "templates/a.yaml", configMap, "values.yaml", "size: 1\n")
		if err != nil || len(report.Conflicts)+len(report.Notes) > 0 || read(t, project, "samples/shop.yaml") != filled || read(t, project, goldenFile) != "mine" {
			t.Errorf("%+v, %v", report, err)
		}
	})
}

func TestADigestIsRecorded(t *testing.T) {
	packed := archive(t, map[string]string{"shop/Chart.yaml": chartHead, "shop/values.yaml": "a: 1", "shop/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n"})
	project := filepath.Join(t.TempDir(), "shop-operator")
	source := Source{Form: FormChart, Path: packed, Origin: "oci://registry.example.com/shop:1.0.0", Digest: "sha256:1"}
	o := Options{Kind: "Shop", Group: "shop.example.com"}
	check.Must(Create(t.Context(), o, source, Corbel{Version: "v0.0.0"}, project, Toolchain{Go: "true"}))(t)
	origin := func() []string {
		o := check.Must(readRecord(project))(t)
		return []string{o.Origin, o.Digest}
	}
	if got := origin(); !slices.Equal(got, []string{source.Origin, source.Digest}) || !strings.Contains(read(t, project, "README.md"), source.Origin) {
		t.Errorf("got %q", got)
	}
	source.Origin, source.Digest = "oci://registry.example.com/shop:1.1.0", "sha256:2"
	if _, err := Update(t.Context(), project, source, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"}); err != nil || !slices.Equal(origin(), []string{source.Origin, source.Digest}) {
		t.Errorf("after an update: %q, %v", origin(), err)
	}
	if _, err := updateProject(t, project, "Chart.yaml", chartHead, "values.yaml", "a: 1"); err != nil || origin()[1] != "" {
		t.Errorf("after an update from a folder: %q, %v", origin(), err)
	}
}

func TestKindsThatOnlyValuesHoldGetNoRights(t *testing.T) {
	extra := "{{ range .Values.extra }}\n---\n{{ tpl . $ }}\n{{ end }}\n"
	values := "extra: [\"{apiVersion: v1, kind: Secret, metadata: {name: extra}}\"]\n"
	plain := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	grants := func(project string) bool {
		return strings.Contains(read(t, project, "deploy/templates/rbac.yaml"), "# Secret")
	}
	t.Run("of a sample", func(t *testing.T) {
		project, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/a.yaml", plain, "templates/extra.yaml", extra, "ci/extra-values.yaml", values)
		const want = "a Secret is in ci/extra-values.yaml, and in no template: add its rule to deploy/templates/rbac.yaml, if values of users may hold such objects"
		if diff := cmp.Diff([]string{want}, report.Notes); diff != "" || grants(project) {
			t.Errorf("the role grants them: %t; notes (-want +got):\n%s", grants(project), diff)
		}
	})
	t.Run("of the default values", func(t *testing.T) {
		project, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/extra.yaml", extra, "values.yaml", values)
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "the spec has only the field values: name values by --field") || !grants(project) {
			t.Errorf("the role grants them: %t; notes %q", grants(project), report.Notes)
		}
		check.Contains(t, read(t, project, recordFile), "# fields: the values of the chart that are fields of the spec.", "\nspec: values\n")
	})
	t.Run("of a sample, where a template computes a kind", func(t *testing.T) {
		computed := "apiVersion: v1\nkind: {{ printf \"%s\" .Values.kind }}\nmetadata: {name: b}\n"
		project, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/a.yaml", computed, "ci/values.yaml", "kind: Secret\n")
		if len(report.Notes) != 1 || !strings.Contains(report.Notes[0], "cannot be read") || !grants(project) {
			t.Errorf("the role grants them: %t; notes %q", grants(project), report.Notes)
		}
	})
}

func TestAnAPIServiceOfAChartIsNoted(t *testing.T) {
	service := "apiVersion: apiregistration.k8s.io/v1\nkind: APIService\nmetadata: {name: v1.metrics.example.com}\n" +
		"spec: {group: metrics.example.com, version: v1, groupPriorityMinimum: 1, versionPriority: 1, service: {name: shop, namespace: default}}\n"
	_, report := newProject(t, Options{}, "Chart.yaml", chartHead, "templates/api.yaml", service)
	if len(report.Notes) != 2 || !strings.Contains(report.Notes[0], "the chart has an APIService") || !strings.Contains(report.Notes[0], "samples/shop.yaml") {
		t.Errorf("got the notes %q", report.Notes)
	}
}

func TestARecordNamesNoFileOutsideOfTheProject(t *testing.T) {
	project, _ := newProject(t, Options{}, "Chart.yaml", chartHead)
	outside := filepath.Join(filepath.Dir(project), "notes")
	files := check.Must(unpackFiles([]byte(read(t, project, baseFile))))(t)
	files["../notes"] = []byte("x")
	writeFiles(t, project, baseFile, string(check.Must(pack(files))(t)), "../notes", "x")
	check.Fails(t, check.ErrorOf(updateProject(t, project)), `read .corbel/base.tgz: the file "../notes" is not inside the project`)
	check.SameNamed(t, "the file outside", "x", read(t, outside))
}

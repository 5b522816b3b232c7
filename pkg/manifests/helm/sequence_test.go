// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/manifests/helm"
)

// member is a ConfigMap in a resource group, or in none, that needs others.
func member(name, group, needs string) string {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n  annotations:\n    note: x\n"
	if group != "" {
		text += "    helm.sh/resource-group: " + group + "\n"
	}
	if needs != "" {
		text += "    helm.sh/depends-on/resource-groups: " + needs + "\n"
	}
	return text + "---\n"
}

// waves returns the names of the objects by their waves, and what was logged.
func waves(t *testing.T, files map[string]string, values map[string]any) (order, logged string, err error) {
	t.Helper()
	var log strings.Builder
	ctx := logf.IntoContext(reconciling(t.Context(), 1), funcr.New(func(_, line string) { log.WriteString(line + "\n") }, funcr.Options{}))
	objects, err := render(ctx, folder(files), values, helm.Options{})
	byWave := map[string][]string{}
	for _, object := range objects {
		annotations := object.GetAnnotations()
		if _, there := annotations["helm.sh/depends-on/resource-groups"]; there {
			t.Errorf("%s has an annotation that no API server accepts", object.GetName())
		}
		wave := annotations["app.example.com/apply-order"]
		if want := "-" + wave; wave != "" && wave[0] != '-' && annotations["app.example.com/delete-order"] != want {
			t.Errorf("%s: delete-order %s, want %s", object.GetName(), annotations["app.example.com/delete-order"], want)
		}
		byWave[wave] = append(byWave[wave], object.GetName())
	}
	var parts []string
	for _, wave := range slices.Sorted(maps.Keys(byWave)) {
		slices.Sort(byWave[wave])
		parts = append(parts, strings.TrimSpace(wave+" "+strings.Join(byWave[wave], " ")))
	}
	return strings.Join(parts, ", "), log.String(), err
}

func TestResourceGroupsAreAppliedInTheirOrder(t *testing.T) {
	for _, test := range []struct{ name, text, want, warning, err string }{
		{name: "no groups", text: member("a", "", "") + member("b", "", ""), want: "a b"},
		{
			name: "a group after two others, and what is in none",
			text: member("app", "app", `'["database","queue"]'`) + member("db", "database", "") + member("queue", "queue", "") + member("rest", "", ""),
			want: "db queue, 1 app, 2 rest",
		},
		{name: "names separated by commas", text: member("a", "a", "' b, c '") + member("b", "b", "c") + member("c", "c", ""), want: "c, 1 b, 2 a"},
		{name: "needs of all members count", text: member("a1", "a", "b") + member("a2", "a", "c") + member("b", "b", "") + member("c", "c", "b"), want: "b, 1 c, 2 a1 a2"},
		{name: "an object that is in no group", text: member("a", "", "b") + member("b", "b", "") + member("c", "", ""), want: "b, 1 a, 2 c"},
		{name: "groups that have nothing to do with each other", text: member("a", "a", "") + member("b", "b", "") + member("c", "", ""), want: "a b c"},
		{name: "an isolated group comes last", text: member("a", "a", "b") + member("b", "b", "") + member("c", "c", ""), want: "b, 1 a, 2 c"},
		{
			name: "a group that is not there", text: member("app", "app", `"[database, queue]"`) + member("db", "database", "") + member("queue", "queue", "other") + member("rest", "", ""),
			want: "db, 1 queue rest, 2 app", warning: `chart web: resource group \"queue\" depends on the group \"other\", which the chart does not have`,
		},
		{name: "a circle", text: member("a", "a", "b") + member("b", "b", "c") + member("c", "c", "b"), err: "chart web: resource groups: they wait for each other: b → c → b"},
		{name: "itself", text: member("a", "a", "a"), err: "resource groups: they wait for each other: a → a"},
		{name: "no list", text: member("a", "a", `'[{"a": 1}]'`), err: "ConfigMap a: annotation helm.sh/depends-on/resource-groups"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, logged, err := waves(t, map[string]string{"web/templates/a.yaml": test.text}, nil)
			if test.err != "" {
				wantError(t, err, test.err)
				return
			}
			if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
			if !strings.Contains(logged, test.warning) || test.warning == "" && logged != "" {
				t.Errorf("logged %q, want %q", logged, test.warning)
			}
		})
	}
}

func TestHooksAreInNoGroup(t *testing.T) {
	text := member("a", "a", "b") + member("b", "b", "") +
		hook("ConfigMap", "c", "pre-install", "    helm.sh/resource-group: b\n    helm.sh/depends-on/resource-groups: nope\n")
	got, logged, err := waves(t, map[string]string{"web/templates/a.yaml": text}, nil)
	if want := "b, -20000 c, 1 a"; err != nil || got != want || logged != "" {
		t.Errorf("got %q, %q, %v, want %q", got, logged, err, want)
	}
}

func TestSubchartsAreAppliedInTheirOrder(t *testing.T) {
	chart := func(parent, name, more string) map[string]string {
		path := parent + "/charts/" + name
		return map[string]string{
			path + "/Chart.yaml": "apiVersion: v2\nname: " + name + "\nversion: 1.0.0\n" + more, path + "/templates/a.yaml": member(`'{{ .Chart.Name }}'`, "", ""),
		}
	}
	tree := func(chartMore string, parts ...map[string]string) map[string]string {
		files := map[string]string{"web/Chart.yaml": chartFile + chartMore, "web/templates/a.yaml": member("web", "", "")}
		for _, part := range parts {
			maps.Copy(files, part)
		}
		return files
	}
	deps := func(entries ...string) string {
		text := "dependencies:\n"
		for _, entry := range entries {
			text += "- {version: 1.x.x, repository: '', " + entry + "}\n"
		}
		return text
	}
	own := func(names string) string { return "annotations: {helm.sh/depends-on/subcharts: '" + names + "'}\n" }
	three := []map[string]string{chart("web", "bar", ""), chart("web", "nginx", ""), chart("web", "rabbit", "")}
	for _, test := range []struct {
		name   string
		files  map[string]string
		values map[string]any
		want   string
		err    string
	}{
		{name: "no order", files: tree("", three...), want: "bar nginx rabbit web"},
		{
			name:  "sub-charts, then the chart",
			files: tree(own(`["bar", "rabbit"]`)+deps("name: nginx", "name: rabbit", "name: bar, depends-on: [nginx, rabbit]"), three...),
			want:  "nginx rabbit, 1 bar, 2 web",
		},
		{name: "a sub-chart that Chart.yaml does not list", files: tree(own("bar"), three...), want: "bar nginx rabbit, 1 web"},
		{
			name:   "one that is switched off",
			files:  tree(own("bar")+deps("name: nginx, condition: nginx.on", "name: rabbit", "name: bar, depends-on: [nginx]"), three...),
			values: map[string]any{"nginx": map[string]any{"on": false}}, want: "bar rabbit, 1 web",
		},
		{
			name:  "aliases",
			files: tree(deps("name: bar", "name: bar, alias: other, depends-on: [bar]", "name: nginx, depends-on: other", "name: rabbit"), three...),
			want:  "bar rabbit web, 1 other, 2 nginx",
		},
		{
			name: "all levels of a sub-chart come before what needs it",
			files: tree(deps("name: bar, depends-on: [nginx]", "name: nginx", "name: rabbit"), chart("web", "bar", ""), chart("web", "rabbit", ""), chart("web", "nginx", own("deep")), chart("web/charts/nginx", "deep", ""),
				map[string]string{"web/charts/nginx/charts/deep/templates/b.yaml": member("late", "late", "early") + member("early", "early", "")}),
			want: "early rabbit web, 1 late, 2 deep, 3 nginx, 4 bar",
		},
		{name: "a circle", files: tree(deps("name: bar, depends-on: [nginx]", "name: nginx, depends-on: [bar]"), three...), err: "sub-charts of chart web: they wait for each other: bar → nginx → bar"},
		{name: "unknown", files: tree(own("nope")+deps("name: bar, depends-on: [none]"), three...), err: `the sub-chart "nope", which the chart does not have` + "\n" + `chart web: depends-on names the sub-chart "none"`},
		{name: "no list", files: tree(deps("name: bar, depends-on: {a: b}"), three...), err: "chart web: Chart.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _, err := waves(t, test.files, test.values)
			if test.err != "" {
				wantError(t, err, test.err)
			} else if err != nil || got != test.want {
				t.Errorf("got %q, %v, want %q", got, err, test.want)
			}
		})
	}
}

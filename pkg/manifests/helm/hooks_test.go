// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"bytes"
	"context"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/test/check"
)

// hook is a manifest that is a hook for the events.
func hook(kind, name, events, more string) string {
	apiVersion := map[string]string{"Job": "batch/v1"}[kind]
	if apiVersion == "" {
		apiVersion = "v1"
	}
	return fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  annotations:\n    helm.sh/hook: %s\n%s---\n", apiVersion, kind, name, events, more)
}

func weight(w int) string { return fmt.Sprintf("    helm.sh/hook-weight: %q\n", fmt.Sprint(w)) }

// ownAnnotations returns, for each object, the annotations that are ours.
func ownAnnotations(t *testing.T, text string, revision int64, options helm.Options) []string {
	t.Helper()
	objects := check.Must(render(reconciling(t.Context(), revision), folder(map[string]string{"web/templates/a.yaml": text}), nil, options))(t)
	var all []string
	for _, object := range objects {
		line := object.GetName()
		for _, name := range []string{"run-on", "apply-order", "purge-order", "reconcile-policy", "update-policy", "delete-policy", "depends-on", "ready-when"} {
			if value, ok := object.GetAnnotations()["app.example.com/"+name]; ok {
				line += " " + name + "=" + value
			}
		}
		if value, ok := object.GetAnnotations()["app.example.com/revision"]; ok {
			line += " revision=" + value
		}
		all = append(all, line)
	}
	return all
}

const once = " reconcile-policy=once-per-manifest update-policy=recreate"

func TestHooksBecomeWaves(t *testing.T) {
	const succeeded = "    helm.sh/hook-delete-policy: before-hook-creation, hook-succeeded\n"
	text := hook("Job", "a", "pre-install,pre-upgrade", weight(-5)) +
		hook("Job", "b", "post-install, post-upgrade", weight(3)+succeeded) +
		hook("Job", "c", "pre-install", "") +
		hook("Job", "d", "post-upgrade", "") +
		hook("ConfigMap", "e", "pre-install", "") +
		hook("ConfigMap", "f", "pre-install,pre-upgrade", succeeded) +
		hook("Job", "g", "pre-delete", weight(7)) +
		hook("Job", "h", "post-delete", "") +
		hook("Job", "i", "test,pre-rollback", "") +
		hook("Job", "j", "crd-install", "") +
		hook("Pod", "k", "pre-install", "") +
		hook("ConfigMap", "l", "post-install,pre-delete", "") +
		hook("ConfigMap", "m", "pre-upgrade", succeeded)
	job := func(text string, revision int) string { return fmt.Sprintf("%s revision=%d", text, revision) }
	common := func(revision int, once string) []string {
		return []string{
			"e apply-order=-20000" + once,
			job("f apply-order=-20000 purge-order=-10000", revision),
			"l apply-order=20000" + once,
		}
	}
	install := append(common(1, ""),
		job("k apply-order=-20000"+once+" depends-on=batch/Job/c ready-when=self.status.phase == 'Succeeded'", 1),
		job("a apply-order=-20005"+once, 1),
		job("b apply-order=20003 purge-order=30000"+once, 1),
		job("c apply-order=-20000"+once, 1),
		"g run-on=pre-delete apply-order=7",
		"h run-on=post-delete apply-order=0",
	)
	if diff := cmp.Diff(install, ownAnnotations(t, text, 1, helm.Options{})); diff != "" {
		t.Errorf("installation: -want +got:\n%s", diff)
	}
	upgrade := append(common(4, " reconcile-policy=once"),
		job("m apply-order=-20000 purge-order=-10000", 4),
		job("a apply-order=-20005"+once, 4),
		job("b apply-order=20003 purge-order=30000"+once, 4),
		job("d apply-order=20000"+once, 4),
		"g run-on=pre-delete apply-order=7",
		"h run-on=post-delete apply-order=0",
	)
	if diff := cmp.Diff(upgrade, ownAnnotations(t, text, 4, helm.Options{})); diff != "" {
		t.Errorf("upgrade: -want +got:\n%s", diff)
	}
}

func TestHooksOfARollbackAreIncludedIfTheCallerKeepsThem(t *testing.T) {
	long := strings.Repeat("x", 60)
	text := hook("Job", "a", "pre-rollback", weight(3)) +
		hook("Job", "b", "pre-upgrade,pre-rollback,post-rollback", "") +
		hook("ConfigMap", "c", "post-rollback", "") +
		hook("Job", long, "pre-upgrade,pre-rollback", "")
	chart := folder(map[string]string{"web/templates/a.yaml": text})
	named := func(ctx context.Context) (lines []string) {
		objects := check.Must(render(ctx, chart, nil, helm.Options{}))(t)
		for _, object := range objects {
			annotations := object.GetAnnotations()
			lines = append(lines, strings.TrimSpace(object.GetName()+" "+annotations["app.example.com/apply-order"]+" "+annotations["app.example.com/run-on"]))
		}
		return lines
	}
	without := named(reconciling(t.Context(), 2))
	if diff := cmp.Diff([]string{"b -20000", long + " -20000"}, without); diff != "" {
		t.Errorf("without them: -want +got:\n%s", diff)
	}
	with := named(renders.WithRollbackHooks(reconciling(t.Context(), 2), true))
	want := []string{
		"c 20000 rollback", "a -19997 rollback", "b -20000", "b-pre-rollback -20000 rollback", "b-post-rollback 20000 rollback",
		long + " -20000", long[:54] + "-ddf116ab -20000 rollback",
	}
	if diff := cmp.Diff(want, with); diff != "" {
		t.Errorf("with them: -want +got:\n%s", diff)
	}
}

func TestARevisionAfterAFailedInstallationIsAnInstallation(t *testing.T) {
	text := hook("Job", "a", "pre-install", "") + hook("Job", "b", "pre-upgrade", "") +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-{{ .Release.IsInstall }}-{{ .Release.IsUpgrade }}-{{ .Release.Revision }}\n"
	for installation, want := range map[bool][]string{true: {"c-true-false-2", "a"}, false: {"c-false-true-2", "b"}} {
		ctx := manifests.Context{ReconcilerName: "app.example.com", Revision: 2, Upgrade: !installation}.In(t.Context())
		objects := check.Must(render(ctx, folder(map[string]string{"web/templates/a.yaml": text}), nil, helm.Options{}))(t)
		var got []string
		for _, object := range objects {
			got = append(got, object.GetName())
		}
		slices.Sort(got)
		slices.Sort(want)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("installation %v: -want +got:\n%s", installation, diff)
		}
	}
}

func TestJobsRunAtEachOfTheirMomentsOneAfterTheOther(t *testing.T) {
	const preDelete, postDelete = "-pre-delete run-on=pre-delete apply-order=0", "-post-delete run-on=post-delete apply-order=0"
	before := func(revision int) string { return fmt.Sprintf("a apply-order=-20000%s revision=%d", once, revision) }
	after := func(name string, revision int) string {
		return fmt.Sprintf("%s apply-order=20000%s revision=%d", name, once, revision)
	}
	at := func(events string) string { return hook("Job", "a", events, "") }
	for _, test := range []struct {
		text             string
		install, upgrade []string
	}{
		{at("pre-install,post-install"), []string{before(1), after("a-post", 1)}, nil},
		{at("pre-install,post-upgrade"), []string{before(1)}, []string{after("a", 2)}},
		{at("post-install,pre-upgrade,post-upgrade"), []string{after("a-post", 1)}, []string{before(2), after("a-post", 2)}},
		{at("post-upgrade,pre-delete"), []string{"a" + preDelete}, []string{after("a", 2), "a" + preDelete}},
		{at("pre-install,pre-delete,post-delete"), []string{before(1), "a" + preDelete, "a" + postDelete}, []string{"a" + preDelete, "a" + postDelete}},
		{
			at("pre-delete,post-delete"), []string{"a run-on=pre-delete apply-order=0", "a" + postDelete},
			[]string{"a run-on=pre-delete apply-order=0", "a" + postDelete},
		},
		// One weight.
		{hook("Job", "b", "pre-install", "") + at("pre-install") + hook("Job", "c", "pre-install", weight(99999)), []string{
			"b apply-order=-20000" + once + " depends-on=batch/Job/a revision=1", before(1), "c apply-order=-10001" + once + " revision=1",
		}, nil},
		// Several runs of several hooks.
		{hook("Job", "b", "pre-install,post-install", "") + at("post-install,post-delete") + hook("Job", "c", "post-delete", ""), []string{
			"b apply-order=-20000" + once + " revision=1",
			"b-post apply-order=20000" + once + " depends-on=batch/Job/a revision=1",
			after("a", 1), "a" + postDelete,
			"c run-on=post-delete apply-order=0 depends-on=batch/Job/a-post-delete",
		}, []string{"a" + postDelete, "c run-on=post-delete apply-order=0 depends-on=batch/Job/a-post-delete"}},
		// The annotations of the chart win.
		{
			hook("Job", "a", "pre-install", "    app.example.com/apply-order: \"5\"\n    app.example.com/update-policy: replace\n"),
			[]string{"a apply-order=5 reconcile-policy=once-per-manifest update-policy=replace revision=1"}, nil,
		},
	} {
		for revision, want := range map[int64][]string{1: test.install, 2: test.upgrade} {
			if diff := cmp.Diff(want, ownAnnotations(t, test.text, revision, helm.Options{})); diff != "" {
				t.Errorf("revision %d of\n%s-want +got:\n%s", revision, test.text, diff)
			}
		}
	}
}

func TestANameThatIsTooLongForSeveralRunsIsRefused(t *testing.T) {
	name := strings.Repeat("n", 60)
	_, err := render(reconciling(t.Context(), 1), folder(map[string]string{"web/templates/a.yaml": hook("Job", name, "pre-install,post-install", "")}), nil, helm.Options{})
	check.Fails(t, err, "web/templates/a.yaml: hook Job "+name+" runs at several moments ([pre-install post-install])", name+"-post; that is longer than 63 characters")
}

func TestHooksNeedAReconciler(t *testing.T) {
	_, err := render(t.Context(), folder(map[string]string{"web/templates/a.yaml": hook("Job", "a", "pre-install", "")}), nil, helm.Options{})
	check.Fails(t, err, "the chart has hooks: the context holds no reconciler name")
}

func TestTheFolderOfCRDsComesFirst(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %s\n"
	fsys := folder(map[string]string{
		"web/crds/a.yaml": fmt.Sprintf(crd, "a"), "web/crds/README.md": "x",
		"web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 1.0.0\n", "web/charts/db/crds/c.yaml": fmt.Sprintf(crd, "c"),
		"web/templates/m.yaml": manifest("x"),
	})
	for _, test := range []struct {
		policy helm.CRDPolicy
		want   []string
	}{
		{"", []string{"a", "c", "a"}},
		{helm.CRDsOnce, []string{"a once", "c once", "a"}},
		{helm.CRDsNever, []string{"a"}},
	} {
		objects := check.Must(render(reconciling(t.Context(), 1), fsys, nil, helm.Options{CRDs: test.policy}))(t)
		var got []string
		for _, object := range objects {
			got = append(got, strings.TrimSpace(object.GetName()+" "+object.GetAnnotations()["app.example.com/reconcile-policy"]))
		}
		check.EqualNamed(t, string(test.policy), test.want, got)
	}
}

// TestTheFolderOfCRDsHasTheSharedTypes has definitions and another object in the folders of a chart and a sub-chart.
func TestTheFolderOfCRDsHasTheSharedTypes(t *testing.T) {
	const crd = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: %s\n"
	files := map[string]string{
		"web/crds/a.yaml": fmt.Sprintf(crd, "a") + "---\n" + manifest("x"), "web/charts/db/Chart.yaml": "apiVersion: v2\nname: db\nversion: 9.0.0\n",
		"web/charts/db/crds/c.yaml": fmt.Sprintf(crd, "c") + "---\n" + fmt.Sprintf(crd, "a"), "web/templates/m.yaml": fmt.Sprintf(crd, "templated"),
	}
	for _, policy := range []helm.CRDPolicy{helm.CRDsApply, helm.CRDsOnce, helm.CRDsNever} {
		generator := check.Must(helm.New(folder(files), "web", helm.Options{CRDs: policy}))(t)
		var got []string
		for _, shared := range renders.SharedTypes(generator) {
			got = append(got, shared.Name+" "+shared.Version+" "+shared.Definition.GetName())
		}
		version := renders.Source(generator).Version
		if diff := cmp.Diff([]string{"a " + version + " a", "c " + version + " c"}, got); diff != "" || version == "" {
			t.Errorf("%s (-want +got):\n%s", policy, diff)
		}
	}
	files["web/crds/a.yaml"] = "kind: ["
	if broken, err := helm.New(folder(files), "web", helm.Options{}); err == nil && len(renders.SharedTypes(broken)) > 0 {
		t.Error("a folder that cannot be read has shared types")
	}
}

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

func TestResourceGroupsAndSubchartsAreAppliedInTheirOrder(t *testing.T) {
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
	inGroups := func(text string) map[string]string { return map[string]string{"web/templates/a.yaml": text} }
	for _, test := range []struct {
		name               string
		files              map[string]string
		values             map[string]any
		want, warning, err string
	}{
		{name: "no groups", files: inGroups(member("a", "", "") + member("b", "", "")), want: "a b"},
		{
			name:  "a group after two others, and what is in none",
			files: inGroups(member("app", "app", `'["database","queue"]'`) + member("db", "database", "") + member("queue", "queue", "") + member("rest", "", "")),
			want:  "db queue, 1 app, 2 rest",
		},
		{name: "names separated by commas", files: inGroups(member("a", "a", "' b, c '") + member("b", "b", "c") + member("c", "c", "")), want: "c, 1 b, 2 a"},
		{name: "needs of all members count", files: inGroups(member("a1", "a", "b") + member("a2", "a", "c") + member("b", "b", "") + member("c", "c", "b")), want: "b, 1 c, 2 a1 a2"},
		{name: "an object that is in no group", files: inGroups(member("a", "", "b") + member("b", "b", "") + member("c", "", "")), want: "b, 1 a, 2 c"},
		{name: "groups that have nothing to do with each other", files: inGroups(member("a", "a", "") + member("b", "b", "") + member("c", "", "")), want: "a b c"},
		{name: "an isolated group comes last", files: inGroups(member("a", "a", "b") + member("b", "b", "") + member("c", "c", "")), want: "b, 1 a, 2 c"},
		{
			name: "a group that is not there", files: inGroups(member("app", "app", `"[database, queue]"`) + member("db", "database", "") + member("queue", "queue", "other") + member("rest", "", "")),
			want: "db, 1 queue rest, 2 app", warning: `chart web: resource group \"queue\" depends on the group \"other\", which the chart does not have`,
		},
		{name: "a circle", files: inGroups(member("a", "a", "b") + member("b", "b", "c") + member("c", "c", "b")), err: "chart web: resource groups: they wait for each other: b → c → b"},
		{name: "itself", files: inGroups(member("a", "a", "a")), err: "resource groups: they wait for each other: a → a"},
		{name: "no list", files: inGroups(member("a", "a", `'[{"a": 1}]'`)), err: "ConfigMap a: annotation helm.sh/depends-on/resource-groups"},
		{name: "a hook is in no group", files: inGroups(member("a", "a", "b") + member("b", "b", "") +
			hook("ConfigMap", "c", "pre-install", "    helm.sh/resource-group: b\n    helm.sh/depends-on/resource-groups: nope\n")), want: "b, -20000 c, 1 a"},
		{name: "no order of sub-charts", files: tree("", three...), want: "bar nginx rabbit web"},
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
		{name: "a circle of sub-charts", files: tree(deps("name: bar, depends-on: [nginx]", "name: nginx, depends-on: [bar]"), three...), err: "sub-charts of chart web: they wait for each other: bar → nginx → bar"},
		{name: "unknown", files: tree(own("nope")+deps("name: bar, depends-on: [none]"), three...), err: `the sub-chart "nope", which the chart does not have` + "\n" + `chart web: depends-on names the sub-chart "none"`},
		{name: "no list of sub-charts", files: tree(deps("name: bar, depends-on: {a: b}"), three...), err: "chart web: Chart.yaml: "},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, logged, err := waves(t, test.files, test.values)
			if test.err != "" {
				check.Fails(t, err, test.err)
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
	check.Fails(t, err, "web/templates/a.yaml: Job b: annotation helm.sh/hook has a value that Helm does not know", "Job d: annotation",
		"allowed are pre-install, post-install, pre-delete, post-delete, pre-upgrade, post-upgrade, pre-rollback, post-rollback, test")
	if logged := heard.text.String() + fmt.Sprint(err); strings.Contains(logged, "canary") {
		t.Errorf("the value is shown: %s", logged)
	}
}

func TestHooksOfHelm2AreLeftOut(t *testing.T) {
	text := "# first\n" + manifest("one") + "---\n" + hook("Job", "b", "crd-install", "") + hook("ConfigMap", "c", "pre-install", "") + manifest("two")
	objects := check.Must(render(reconciling(t.Context(), 1), folder(map[string]string{"web/templates/a.yaml": text}), nil, helm.Options{}))(t)
	if len(objects) != 3 || data(t, objects[0]) != "one" || data(t, objects[1]) != "two" || objects[2].GetName() != "c" {
		t.Errorf("got %v", objects)
	}
}

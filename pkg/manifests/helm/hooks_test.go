// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
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
	objects, err := render(reconciling(t.Context(), revision), folder(map[string]string{"web/templates/a.yaml": text}), nil, options)
	if err != nil {
		t.Fatal(err)
	}
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
		objects, err := render(ctx, chart, nil, helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
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

func TestHooksOfOneWeightRunOneAfterTheOther(t *testing.T) {
	text := hook("Job", "b", "pre-install", "") + hook("Job", "a", "pre-install", "") + hook("Job", "c", "pre-install", weight(99999))
	want := []string{
		"b apply-order=-20000" + once + " depends-on=batch/Job/a revision=1",
		"a apply-order=-20000" + once + " revision=1",
		"c apply-order=-10001" + once + " revision=1",
	}
	if diff := cmp.Diff(want, ownAnnotations(t, text, 1, helm.Options{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestARevisionAfterAFailedInstallationIsAnInstallation(t *testing.T) {
	text := hook("Job", "a", "pre-install", "") + hook("Job", "b", "pre-upgrade", "") +
		"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: c-{{ .Release.IsInstall }}-{{ .Release.IsUpgrade }}-{{ .Release.Revision }}\n"
	for installation, want := range map[bool][]string{true: {"c-true-false-2", "a"}, false: {"c-false-true-2", "b"}} {
		ctx := manifests.Context{ReconcilerName: "app.example.com", Revision: 2, Upgrade: !installation}.In(t.Context())
		objects, err := render(ctx, folder(map[string]string{"web/templates/a.yaml": text}), nil, helm.Options{})
		if err != nil {
			t.Fatal(err)
		}
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

func TestAJobRunsAtEachOfItsMoments(t *testing.T) {
	const preDelete, postDelete = "-pre-delete run-on=pre-delete apply-order=0", "-post-delete run-on=post-delete apply-order=0"
	before := func(revision int) string { return fmt.Sprintf("a apply-order=-20000%s revision=%d", once, revision) }
	after := func(name string, revision int) string {
		return fmt.Sprintf("%s apply-order=20000%s revision=%d", name, once, revision)
	}
	for _, test := range []struct {
		events           string
		install, upgrade []string
	}{
		{"pre-install,post-install", []string{before(1), after("a-post", 1)}, nil},
		{"pre-install,post-upgrade", []string{before(1)}, []string{after("a", 2)}},
		{"post-install,pre-upgrade,post-upgrade", []string{after("a-post", 1)}, []string{before(2), after("a-post", 2)}},
		{"post-upgrade,pre-delete", []string{"a" + preDelete}, []string{after("a", 2), "a" + preDelete}},
		{"pre-install,pre-delete,post-delete", []string{before(1), "a" + preDelete, "a" + postDelete}, []string{"a" + preDelete, "a" + postDelete}},
		{"pre-delete,post-delete", []string{"a run-on=pre-delete apply-order=0", "a" + postDelete}, []string{"a run-on=pre-delete apply-order=0", "a" + postDelete}},
	} {
		text := hook("Job", "a", test.events, "")
		if diff := cmp.Diff(test.install, ownAnnotations(t, text, 1, helm.Options{})); diff != "" {
			t.Errorf("%s: installation: -want +got:\n%s", test.events, diff)
		}
		if diff := cmp.Diff(test.upgrade, ownAnnotations(t, text, 2, helm.Options{})); diff != "" {
			t.Errorf("%s: upgrade: -want +got:\n%s", test.events, diff)
		}
	}
}

func TestRunsOfSeveralHooksFollowEachOther(t *testing.T) {
	text := hook("Job", "b", "pre-install,post-install", "") + hook("Job", "a", "post-install,post-delete", "") + hook("Job", "c", "post-delete", "")
	want := []string{
		"b apply-order=-20000" + once + " revision=1",
		"b-post apply-order=20000" + once + " depends-on=batch/Job/a revision=1",
		"a apply-order=20000" + once + " revision=1",
		"a-post-delete run-on=post-delete apply-order=0",
		"c run-on=post-delete apply-order=0 depends-on=batch/Job/a-post-delete",
	}
	if diff := cmp.Diff(want, ownAnnotations(t, text, 1, helm.Options{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestANameThatIsTooLongForSeveralRunsIsRefused(t *testing.T) {
	name := strings.Repeat("n", 60)
	_, err := render(reconciling(t.Context(), 1), folder(map[string]string{"web/templates/a.yaml": hook("Job", name, "pre-install,post-install", "")}), nil, helm.Options{})
	wantError(t, err, "web/templates/a.yaml: hook Job "+name+" runs at several moments ([pre-install post-install])", name+"-post; that is longer than 63 characters")
}

func TestHooksNeedAReconciler(t *testing.T) {
	_, err := render(t.Context(), folder(map[string]string{"web/templates/a.yaml": hook("Job", "a", "pre-install", "")}), nil, helm.Options{})
	wantError(t, err, "the chart has hooks: the context holds no reconciler name")
}

func TestAnnotationsOfTheChartWin(t *testing.T) {
	text := hook("Job", "a", "pre-install", "    app.example.com/apply-order: \"5\"\n    app.example.com/update-policy: replace\n")
	want := []string{"a apply-order=5 reconcile-policy=once-per-manifest update-policy=replace revision=1"}
	if diff := cmp.Diff(want, ownAnnotations(t, text, 1, helm.Options{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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
		objects, err := render(reconciling(t.Context(), 1), fsys, nil, helm.Options{CRDs: test.policy})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, object := range objects {
			got = append(got, strings.TrimSpace(object.GetName()+" "+object.GetAnnotations()["app.example.com/reconcile-policy"]))
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s: -want +got:\n%s", test.policy, diff)
		}
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
		generator, err := helm.New(folder(files), "web", helm.Options{CRDs: policy})
		if err != nil {
			t.Fatal(err)
		}
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

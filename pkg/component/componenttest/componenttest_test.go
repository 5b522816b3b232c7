// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// short is how long a failing test waits for a state that does not come.
const short = 10 * time.Second

func TestALifecycleOfARightOperatorPasses(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates)
	o.TestLifecycle(t, note(), rewrite)
	o.TestLifecycle(t, note(), nil)
}

func TestAnInstalledComponentCanBeChangedAndDeleted(t *testing.T) {
	t.Parallel()
	i := notes(t, noteTemplates).Install(t, note())
	text := &corev1.ConfigMap{}
	key := client.ObjectKey{Namespace: i.Namespace, Name: "main-text"}
	want := func(want string) {
		t.Helper()
		if err := i.Client.Get(t.Context(), key, text); err != nil || text.Data["text"] != want {
			t.Errorf("the ConfigMap holds %v, error %v, want the text %q", text.Data, err, want)
		}
	}
	want("one")
	i.Edit(t, rewrite)
	want("two")
	i.Edit(t, func(n *Note) { n.Annotations = map[string]string{"example.com/remark": "no change of the generation"} })
	if i.Component.Annotations["example.com/remark"] == "" {
		t.Error("the edit of an annotation is lost")
	}
	checkConditions(t, i.Component)
	i.Delete(t)
}

func TestWhatAnInstallationLeavesIsRemovedAtTheEndOfTheTest(t *testing.T) {
	t.Parallel()
	var i *componenttest.Installed[*Note]
	t.Run("install", func(t *testing.T) { i = notes(t, noteTemplates).Install(t, note()) })
	if i == nil {
		t.Skip("nothing was installed") // without a control plane
	}
	list := &corev1.ConfigMapList{}
	if err := i.Client.List(t.Context(), list, client.InNamespace(i.Namespace), client.HasLabels{noteOperator + "/owner-id"}); err != nil {
		t.Fatal(err)
	}
	if err := i.Client.Get(t.Context(), client.ObjectKeyFromObject(i.Component), &Note{}); client.IgnoreNotFound(err) != nil || err == nil {
		t.Errorf("the component is still there, error %v", err)
	}
	if len(list.Items) > 0 {
		t.Errorf("%d ConfigMaps are left", len(list.Items))
	}
}

// leaveTrace creates a ConfigMap that nothing removes.
func leaveTrace(r *noteReconciler) {
	r.WithPreReconcileHook(func(ctx context.Context, c client.Client, n *Note) error {
		return client.IgnoreAlreadyExists(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "trace"}}))
	})
}

// leaveTraceElsewhere creates one in another namespace.
func leaveTraceElsewhere(r *noteReconciler) {
	r.WithPreReconcileHook(func(ctx context.Context, c client.Client, n *Note) error {
		return client.IgnoreAlreadyExists(c.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "componenttest-trace"}}))
	})
}

func TestALifecycleFailsIfSomethingIsLeft(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		hook     func(*noteReconciler)
		want     string
		retained string
	}{
		"in the namespace":     {leaveTrace, "there is still: ConfigMap trace", "ConfigMap tr*"},
		"in another namespace": {leaveTraceElsewhere, "there is still: ConfigMap default/componenttest-trace", "ConfigMap default/componenttest-trace"},
	} {
		t.Run(name, func(t *testing.T) {
			o := notes(t, noteTemplates, tc.hook)
			o.Timeout = short
			check(t, func(t testing.TB) { o.TestLifecycle(t, note(), nil) }).wants(t, "waited 10s for the component to be gone", tc.want)
			o.Retained = []string{tc.retained}
			o.TestLifecycle(t, note(), nil)
		})
	}
	trace := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "componenttest-trace"}}
	i := notes(t, noteTemplates).Install(t, note())
	if err := client.IgnoreNotFound(i.Client.Delete(t.Context(), trace)); err != nil {
		t.Error(err)
	}
}

func TestALifecycleFailsIfTheComponentDoesNotBecomeReady(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates, func(r *noteReconciler) {
		r.WithPreReconcileHook(func(context.Context, client.Client, *Note) error { return errors.New("no ink") })
	})
	o.Timeout = short
	check(t, func(t testing.TB) { o.TestLifecycle(t, note(), nil) }).wants(t, "waited 10s for the component to be Ready", "no ink")
}

func TestAnOperatorThatIsNotCompleteIsReported(t *testing.T) {
	t.Parallel()
	check(t, func(t testing.TB) { componenttest.Operator[*Note]{}.TestLifecycle(t, note(), nil) }).
		wants(t, "the field Config", "the field Scheme", "the field SetUp")
}

func TestCrashesOfARightOperatorPass(t *testing.T) {
	t.Parallel()
	notes(t, noteTemplates).TestCrashes(t, note(), rewrite, every(8, 1))
}

// numbered creates a ConfigMap with another name for each process: a crash leaves one more.
func numbered(processes *atomic.Int64) func(*noteReconciler) {
	return func(r *noteReconciler) {
		name := "process-" + string(rune('a'+processes.Add(1)%26))
		object := func(n *Note) *corev1.ConfigMap {
			return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: name}}
		}
		r.WithPreReconcileHook(func(ctx context.Context, c client.Client, n *Note) error {
			return client.IgnoreAlreadyExists(c.Create(ctx, object(n)))
		})
		r.WithPreDeleteHook(func(ctx context.Context, c client.Client, n *Note) error {
			return client.IgnoreNotFound(c.Delete(ctx, object(n)))
		})
	}
}

func TestCrashesFailIfTheOperatorLosesWhatItHasCreated(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates, numbered(new(atomic.Int64)))
	o.Timeout = short
	o.TestLifecycle(t, note(), rewrite) // without a crash it is right
	check(t, func(t testing.TB) { o.TestCrashes(t, note(), nil, 5) }).
		wants(t, "ConfigMap process-", "the operator crashed ", "to run it alone: go test -run '^"+t.Name()+"$'")
}

func TestCrashesFailIfTheEndIsAnother(t *testing.T) {
	t.Parallel()
	// The first of all processes writes another text than those that follow.
	var processes atomic.Int64
	o := notes(t, strings.Replace(noteTemplates, "text: constant", "text: {{ .Values.process | quote }}", 1))
	setUp, later := o.SetUp, notes(t, strings.Replace(noteTemplates, "text: constant", "text: later", 1)).SetUp
	o.SetUp = func(mgr ctrl.Manager) error {
		if processes.Add(1) == 1 {
			return setUp(mgr)
		}
		return later(mgr)
	}
	o.Timeout = short
	check(t, func(t testing.TB) { o.TestCrashes(t, note(), nil, 1) }).
		wants(t, "the dependents are not those that there are without a failure (-want +got)", "later")
}

func TestFaultsOfTheServerAreOvercomeByARightOperator(t *testing.T) {
	t.Parallel()
	notes(t, noteTemplates).TestFaults(t, note(), rewrite)
}

func TestFaultsFailIfTheOperatorGivesUp(t *testing.T) {
	t.Parallel()
	var failed atomic.Bool
	o := notes(t, noteTemplates, func(r *noteReconciler) {
		r.WithPreReconcileHook(func(ctx context.Context, _ client.Client, n *Note) error {
			c := manifests.FromContext(ctx).LocalClient // it reads from the server
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "once"}}
			for range 2 { // one of the first two requests fails
				if err := c.Get(ctx, client.ObjectKeyFromObject(object), object); client.IgnoreNotFound(err) != nil {
					failed.Store(true)
				}
			}
			if failed.Load() {
				return errors.New("gave up after the first failure")
			}
			return nil
		})
	})
	o.Timeout = short
	check(t, func(t testing.TB) { o.TestFaults(t, note(), nil) }).
		wants(t, "gave up after the first failure", "requests failed with internal errors (500)")
}

func TestAnUpgradeWithoutAChangePasses(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates)
	o.TestUpgrade(t, o, note())
}

func TestAnUpgradeThatChangesInPlacePasses(t *testing.T) {
	t.Parallel()
	o := notes(t, strings.Replace(noteTemplates, "text: constant", "text: changed", 1))
	o.TestUpgrade(t, notes(t, noteTemplates), note())
}

// annotated adds an annotation of the operator to the ConfigMap that does not change.
func annotated(key, value string) string {
	return strings.Replace(noteTemplates, "-constant}", "-constant, annotations: {"+noteOperator+"/"+key+": "+value+"}}", 1)
}

func TestAnUpgradeThatRecreatesFails(t *testing.T) {
	t.Parallel()
	from := notes(t, annotated("update-policy", "recreate"))
	o := notes(t, strings.Replace(annotated("update-policy", "recreate"), "text: constant", "text: changed", 1))
	check(t, func(t testing.TB) { o.TestUpgrade(t, from, note()) }).wants(t, "the upgrade recreates ConfigMap main-constant: its uid was ")
	o.TestUpgrade(t, from, note(), "ConfigMap main-const*")
}

func TestAnUpgradeThatRemovesADependentFails(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates[:strings.LastIndex(noteTemplates, "---")])
	check(t, func(t testing.TB) { o.TestUpgrade(t, notes(t, noteTemplates), note()) }).wants(t, "the upgrade removes Secret main-seal")
}

func TestAnUpgradeThatWritesWithoutAChangeFails(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates, func(r *noteReconciler) {
		r.WithPreReconcileHook(func(ctx context.Context, c client.Client, n *Note) error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "main-constant"}}
			return client.IgnoreNotFound(c.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"true"}}}`))))
		})
	})
	check(t, func(t testing.TB) { o.TestUpgrade(t, notes(t, noteTemplates), note()) }).
		wants(t, "the manifests are the same, and yet the new operator writes", "PATCH /api/v1/namespaces/", "configmaps/main-constant (answered with 200)")
}

// noteRules are what the operator of the Notes needs, and one verb that it does not.
func noteRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{noteVersion.Group}, Resources: []string{"notes"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: []string{noteVersion.Group}, Resources: []string{"notes/status"}, Verbs: []string{"patch"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch", "delete"}},
		{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"get"}},
		{APIGroups: []string{"events.k8s.io"}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "create", "update"}},
		{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}},
	}
}

func TestRightsOfARightOperatorSufficeAndUnusedRulesAreReturned(t *testing.T) {
	unused := notes(t, noteTemplates).TestRights(t, note(), rewrite, noteRules())
	want := rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"create"}}
	found := 0
	for _, rule := range unused {
		if cmp.Equal(rule, want) {
			found++
		}
		if rule.APIGroups[0] == "" && rule.Resources[0] == "configmaps" && strings.Contains(strings.Join(rule.Verbs, " "), "create") {
			t.Errorf("it says that the operator creates no ConfigMaps: %v", rule)
		}
	}
	if found != 1 {
		t.Errorf("got %v, want among them %v", unused, want)
	}
}

func TestRightsThatLackAVerbFail(t *testing.T) {
	rules := noteRules()
	rules[2].Resources = []string{"secrets"} // which of the objects is deleted first is not known
	rules = append(rules, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list", "watch", "create", "update", "patch"}})
	o := notes(t, noteTemplates)
	started := time.Now()
	check(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) }).
		wants(t, "is forbidden: the operator needs delete on configmaps of the API group \"\"")
	if took := time.Since(started); took > time.Minute {
		t.Errorf("it waited %s although a request was refused", took)
	}
	check(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, nil) }).wants(t, "there are no rules to test")
}

func TestRightsFailIfTheLeaderElectionIsForbidden(t *testing.T) {
	o := notes(t, noteTemplates)
	rules := slices.DeleteFunc(noteRules(), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "leases" })
	o.Timeout = 20 * time.Second
	check(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) }).
		wants(t, "is forbidden: the operator needs get on leases of the API group \"coordination.k8s.io\"")
}

func TestRightsOfNoUseFail(t *testing.T) {
	o := notes(t, noteTemplates)
	o.Chart = fstest.MapFS{
		"Chart.yaml":        {Data: []byte("{apiVersion: v2, name: notes, version: 1.0.0}")},
		"templates/a.yaml":  {Data: []byte("apiVersion: v1\nkind: Secret\n---\n{{ tpl .Values.extra $ }}\n")}, // the ConfigMap is of values
		"templates/or.yaml": {Data: []byte("{{ if .Values.job }}\napiVersion: batch/v1\nkind: Job\n{{ end }}\n")},
	}
	rules := append(noteRules(),
		rbacv1.PolicyRule{APIGroups: []string{"batch"}, Resources: []string{"jobs"}, Verbs: []string{"get", "create", "deletecollection"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"nodes"}, Verbs: []string{"list"}})
	got := check(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) })
	const want = `rules of no use, neither to Corbel nor in any branch of the manifests: remove them:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
- {apiGroups: ["apps"], resources: [deployments], verbs: [create]}
- {apiGroups: ["batch"], resources: [jobs], verbs: [deletecollection]}`
	if diff := cmp.Diff([]string{want}, got.errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if logged := strings.Join(got.logs, "\n"); !strings.Contains(logged, `{apiGroups: ["batch"], resources: [jobs], verbs: [get, create, deletecollection]}`) {
		t.Errorf("logged: %s", logged)
	}
}

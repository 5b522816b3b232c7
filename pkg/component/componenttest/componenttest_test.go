// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	shopv1alpha1 "github.com/corbel-run/corbel/examples/shop/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/componenttest"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

// short is how long a failing test waits for a state that does not come.
const short = 10 * time.Second

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
			check.Run(t, func(t testing.TB) { o.TestLifecycle(t, note(), nil) }).Wants(t, "waited 10s for the component to be gone", tc.want)
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
	check.Run(t, func(t testing.TB) { o.TestLifecycle(t, note(), nil) }).Wants(t, "waited 10s for the component to be Ready", "no ink")
}

func TestAnOperatorThatIsNotCompleteIsReported(t *testing.T) {
	t.Parallel()
	check.Run(t, func(t testing.TB) { componenttest.Operator[*Note]{}.TestLifecycle(t, note(), nil) }).
		Wants(t, "the field Config", "the field Scheme", "the field SetUp")
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
	got := check.Run(t, func(t testing.TB) { o.TestCrashes(t, note(), nil, 5) })
	got.Wants(t, "ConfigMap process-")
	got.WantsLogged(t, "the operator crashed ", "to run it alone: go test -run '^"+t.Name()+"$'")
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
	check.Run(t, func(t testing.TB) { o.TestCrashes(t, note(), nil, 1) }).
		Wants(t, "the dependents are not those that there are without a failure (-want +got)", "later")
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
	got := check.Run(t, func(t testing.TB) { o.TestFaults(t, note(), nil) })
	got.Wants(t, "gave up after the first failure")
	got.WantsLogged(t, "requests failed with internal errors (500)")
}

func TestWhatAnUpgradeMayChange(t *testing.T) {
	t.Parallel()
	changed := func(templates string) string { return strings.Replace(templates, "text: constant", "text: changed", 1) }
	recreated := strings.Replace(noteTemplates, "-constant}", "-constant, annotations: {"+noteOperator+"/update-policy: recreate}}", 1)
	label := func(r *noteReconciler) {
		r.WithPreReconcileHook(func(ctx context.Context, c client.Client, n *Note) error {
			object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: n.Namespace, Name: "main-constant"}}
			return client.IgnoreNotFound(c.Patch(ctx, object, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"seen":"true"}}}`))))
		})
	}
	for name, test := range map[string]struct {
		from, to string
		hooks    []func(*noteReconciler)
		says     []string // why it fails; empty if it passes
		allowed  string   // with this, it passes
	}{
		"a change in place": {from: noteTemplates, to: changed(noteTemplates)},
		"a recreation": {from: recreated, to: changed(recreated), allowed: "ConfigMap main-const*",
			says: []string{"the upgrade recreates ConfigMap main-constant: its uid was "}},
		"a removal": {from: noteTemplates, to: noteTemplates[:strings.LastIndex(noteTemplates, "---")],
			says: []string{"the upgrade removes Secret main-seal"}},
		"a write without a change": {from: noteTemplates, to: noteTemplates, hooks: []func(*noteReconciler){label},
			says: []string{
				"the manifests are the same, and yet the new operator writes", "PATCH /api/v1/namespaces/", "configmaps/main-constant (answered with 200)",
			}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := notes(t, test.from), notes(t, test.to, test.hooks...)
			if len(test.says) > 0 {
				check.Run(t, func(t testing.TB) { to.TestUpgrade(t, from, note()) }).Wants(t, test.says...)
			}
			if len(test.says) == 0 || test.allowed != "" {
				to.TestUpgrade(t, from, note(), test.allowed)
			}
		})
	}
}

// noteRules are what the operator of the Notes needs, and one verb that it does not.
func noteRules() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{
		{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"widgets"}, Verbs: []string{"get", "list", "watch", "update", "patch"}},
		{APIGroups: []string{widget.GroupVersion.Group}, Resources: []string{"widgets/status"}, Verbs: []string{"patch"}},
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
	check.Run(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) }).
		Wants(t, "is forbidden: the operator needs delete on configmaps of the API group \"\"")
	if took := time.Since(started); took > time.Minute {
		t.Errorf("it waited %s although a request was refused", took)
	}
	check.Run(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, nil) }).Wants(t, "there are no rules to test")
}

func TestRightsFailIfTheLeaderElectionIsForbidden(t *testing.T) {
	o := notes(t, noteTemplates)
	rules := slices.DeleteFunc(noteRules(), func(r rbacv1.PolicyRule) bool { return r.Resources[0] == "leases" })
	o.Timeout = 20 * time.Second
	check.Run(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) }).
		Wants(t, "is forbidden: the operator needs get on leases of the API group \"coordination.k8s.io\"")
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
	got := check.Run(t, func(t testing.TB) { o.TestRights(t, note(), rewrite, rules) })
	const want = `rules of no use, neither to Corbel nor in any branch of the manifests: remove them:
- {apiGroups: [""], resources: [nodes], verbs: [list]}
- {apiGroups: ["apps"], resources: [deployments], verbs: [create]}
- {apiGroups: ["batch"], resources: [jobs], verbs: [deletecollection]}`
	if diff := cmp.Diff([]string{want}, got.Errors); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	got.WantsLogged(t, `{apiGroups: ["batch"], resources: [jobs], verbs: [get, create, deletecollection]}`)
}

// shopFolder is a chart with hooks, volumes, Deployments, and a CustomResourceDefinition
// together with an instance of it.
var shopFolder = filepath.Join("..", "..", "..", "examples", "shop")

func shops(t *testing.T) componenttest.Operator[*shopv1alpha1.Shop] {
	t.Helper()
	config := env.Shared(t).Config()
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join(shopFolder, "config", "crd")}}); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, shopv1alpha1.SchemeBuilder.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	return componenttest.Operator[*shopv1alpha1.Shop]{
		Config: config, Scheme: scheme,
		SetUp: func(mgr ctrl.Manager) error {
			generator, err := helm.New(os.DirFS(shopFolder), "chart", helm.Options{})
			if err != nil {
				return err
			}
			return component.NewReconciler[*shopv1alpha1.Shop]("shop.example.com", generator, component.ReconcilerOptions{}).SetupWithManager(mgr)
		},
		Prerequisites: []client.Object{&corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Name: shop().Spec.DatabaseSecret}, StringData: map[string]string{"password": "swordfish"},
		}},
	}
}

func shop() *shopv1alpha1.Shop {
	return &shopv1alpha1.Shop{
		ObjectMeta: metav1.ObjectMeta{Name: "corner"},
		Spec: shopv1alpha1.ShopSpec{
			TimeoutSpec: component.TimeoutSpec{Timeout: &types.Duration{Duration: time.Minute}},
			ShopValues: shopv1alpha1.ShopValues{
				Replicas: 1, Image: "registry.example.com/shop:1.0", Greeting: "Welcome", DatabaseSecret: "corner-database",
				Discount: 10, Cache: shopv1alpha1.CacheValues{Enabled: true},
			},
		},
	}
}

// closeCache removes a sub-chart and changes what is left.
func closeCache(s *shopv1alpha1.Shop) { s.Spec.Greeting, s.Spec.Cache.Enabled = "Closing", false }

// TestTheShop runs one after the other what shares the objects that are one for the cluster.
func TestTheShop(t *testing.T) {
	t.Parallel()
	o := shops(t)
	t.Run("lifecycle and rights", func(t *testing.T) {
		text, err := os.ReadFile(filepath.Join(shopFolder, "config", "rbac.yaml"))
		if err != nil {
			t.Fatal(err)
		}
		role := &rbacv1.ClusterRole{}
		if err := yaml.UnmarshalStrict(text, role); err != nil {
			t.Fatal(err)
		}
		o.TestRights(t, shop(), closeCache, role.Rules)
	})
	whole, points := os.Getenv("CORBEL_SLICE") == "1/1", 67 // enumerations run all cases in make test-all
	if whole {
		points = 1
	}
	t.Run("crashes", func(t *testing.T) { o.TestCrashes(t, shop(), closeCache, points) })
	if whole {
		t.Run("faults", func(t *testing.T) { o.TestFaults(t, shop(), closeCache) })
	}
	t.Run("upgrade", func(t *testing.T) { o.TestUpgrade(t, o, shop()) })
}

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{Cluster: true})) }

// Note is a component that is rendered into ConfigMaps and a Secret: its value text.
type Note = widget.Widget

const noteOperator = "notes.componenttest.corbel.run"

var noteScheme = func() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), widget.AddToScheme(scheme)); err != nil {
		panic(err)
	}
	return scheme
}()

// noteTemplates are a ConfigMap that changes with the note, one that does not, and a Secret.
const noteTemplates = `
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-text}
data: {text: {{ .Values.values.text | quote }}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ .Name }}-constant}
data: {text: constant}
---
apiVersion: v1
kind: Secret
metadata: {name: {{ .Name }}-seal}
stringData: {text: {{ .Values.values.text | quote }}}
`

type noteReconciler = component.Reconciler[*Note]

// installing is held while the type of Notes is installed, which two tests cannot do at once.
var installing sync.Mutex

// notes is an operator for Notes with these templates. The hooks are added to its reconciler.
func notes(t testing.TB, templates string, hooks ...func(*noteReconciler)) componenttest.Operator[*Note] {
	t.Helper()
	config := env.Shared(t).Config()
	installing.Lock()
	defer installing.Unlock()
	check.Must(envtest.InstallCRDs(config, envtest.CRDInstallOptions{Paths: []string{filepath.Join("..", "testdata", "crds")}}))(t)
	generator := check.Must(gotemplate.New(fstest.MapFS{"note.yaml": {Data: []byte(templates)}}, ".", gotemplate.Options{}))(t)
	return componenttest.Operator[*Note]{
		Config: config, Scheme: noteScheme,
		SetUp: func(mgr ctrl.Manager) error {
			r := component.NewReconciler[*Note](noteOperator, generator, component.ReconcilerOptions{Controller: component.ControllerOptions{
				RateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](20*time.Millisecond, time.Second), // many requests fail
			}})
			for _, hook := range hooks {
				hook(r)
			}
			return r.SetupWithManager(mgr)
		},
	}
}

func note() *Note {
	return &Note{ObjectMeta: metav1.ObjectMeta{Name: "main"}, Spec: widget.Spec{Values: map[string]string{"text": "one"}}}
}

func TestARequiredObjectIsAPrerequisite(t *testing.T) {
	t.Parallel()
	o := notes(t, noteTemplates)
	for _, text := range []string{
		`{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: databases.given.corbel.run}, spec: {group: given.corbel.run, scope: Namespaced,
			names: {plural: databases, singular: database, kind: Database, listKind: DatabaseList},
			versions: [{name: v1, served: true, storage: true, subresources: {status: {}}, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}`,
		`{apiVersion: given.corbel.run/v1, kind: Database, metadata: {name: db}, status: {conditions: [{type: Ready, status: "True"}], outputs: {host: db.example.com}}}`,
	} {
		object := &unstructured.Unstructured{}
		check.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
		o.Prerequisites = append(o.Prerequisites, object)
	}
	requiring := note()
	requiring.Spec.Requires = []component.Requirement{{APIVersion: "given.corbel.run/v1", Kind: "Database", Name: "db", Inputs: map[string]string{"values.text": "host"}}}
	i, text := o.Install(t, requiring), &corev1.ConfigMap{}
	check.NoError(t, i.Client.Get(t.Context(), client.ObjectKey{Namespace: i.Namespace, Name: "main-text"}, text))
	check.Same(t, "db.example.com", text.Data["text"])
}

func rewrite(n *Note) { n.Spec.Values["text"] = "two" }

// checkConditions checks the conditions of a Note.
func checkConditions(t testing.TB, n *Note) {
	t.Helper()
	conditionstest.Check(t, conditions.For(n, &n.Status.Conditions))
}

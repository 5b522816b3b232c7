// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func TestOptions(t *testing.T) {
	t.Setenv("POD_NAMESPACE", "operators")
	long := strings.Repeat("a", 60) + ".example.com"
	defaults := func(name, finalizer string) settings {
		return settings{
			management: v1alpha1.ManagementPolicyManage, targetConcurrency: 1, historyLimit: 10, minReady: 10 * time.Second, operatorNamespace: "operators",
			Operator: identity.Operator{Name: name, FieldOwner: name, Finalizer: finalizer},
			policies: reconciler.Policies{
				Adoption: v1alpha1.AdoptionPolicyIfUnowned, Update: v1alpha1.UpdatePolicyReplace, Drift: v1alpha1.DriftPolicyRepair,
				Delete: v1alpha1.DeletePolicyDelete, MissingNamespaces: v1alpha1.MissingNamespacesPolicyCreate,
			},
		}
	}
	tests := []struct {
		name           string
		reconcilerName string
		options        ReconcilerOptions
		want           settings
		err            string
	}{
		{name: "defaults", reconcilerName: "shop.example.com", want: defaults("shop.example.com", "shop.example.com")},
		{name: "empty is unspecified", reconcilerName: "shop.example.com", options: ReconcilerOptions{
			FieldOwner: new(""), Finalizer: new(""), DefaultServiceAccount: new(""),
		}, want: defaults("shop.example.com", "shop.example.com")},
		{name: "everything said", reconcilerName: "shop.example.com", options: ReconcilerOptions{
			FieldOwner: new("owner"), Operator: OperatorOptions{OperatorNamespace: new("elsewhere")}, Finalizer: new("shop.example.com/finalizer"), DefaultServiceAccount: new("deployer"),
			AdoptionPolicy: new(v1alpha1.AdoptionPolicyAlways), UpdatePolicy: new(v1alpha1.UpdatePolicySsaOverride),
			DeletePolicy: new(v1alpha1.DeletePolicyOrphanOnDelete), DriftPolicy: new(v1alpha1.DriftPolicyReport), MissingNamespacesPolicy: new(v1alpha1.MissingNamespacesPolicyDoNotCreate),
			Objects:    ObjectOptions{SharedTypes: []string{"shops.example.com"}},
			Controller: ControllerOptions{TargetConcurrency: new(3)}, Revisions: RevisionOptions{RevisionHistoryLimit: new(3), MinReadySeconds: new(0), RollbackOnFailure: true}, ManagementPolicy: new(v1alpha1.ManagementPolicySkip), Users: UserOptions{NamespaceManagementPolicies: true},
		}, want: settings{
			objects:    ObjectOptions{SharedTypes: []string{"shops.example.com"}},
			management: v1alpha1.ManagementPolicySkip, users: UserOptions{NamespaceManagementPolicies: true}, targetConcurrency: 3, historyLimit: 3, rollbackOnFailure: true, operatorNamespace: "elsewhere", Operator: identity.Operator{Name: "shop.example.com", FieldOwner: "owner", Finalizer: "shop.example.com/finalizer"}, serviceAccount: "deployer",
			policies: reconciler.Policies{
				Adoption: v1alpha1.AdoptionPolicyAlways, Update: v1alpha1.UpdatePolicySsaOverride, Drift: v1alpha1.DriftPolicyReport,
				Delete: v1alpha1.DeletePolicyOrphanOnDelete, MissingNamespaces: v1alpha1.MissingNamespacesPolicyDoNotCreate,
			}}},
		{name: "no name", err: `reconciler name ""|option FieldOwner ""|option Finalizer ""`},
		{name: "an illegal name", reconcilerName: "Shop!", err: `reconciler name "Shop!"`},
		{name: "a name that is too long for a finalizer", reconcilerName: long, err: "option Finalizer"},
		{name: "a long name with another finalizer", reconcilerName: long, options: ReconcilerOptions{Finalizer: new(long + "/f")}, want: defaults(long, long+"/f")},
		{name: "a finalizer of the server", reconcilerName: "a", options: ReconcilerOptions{Finalizer: new("orphan")}, err: "belongs to the API server"},
		{name: "a rollback without a history", reconcilerName: "a", options: ReconcilerOptions{
			Revisions: RevisionOptions{RevisionHistoryLimit: new(0), RollbackOnFailure: true},
		}, err: "RollbackOnFailure needs a RevisionHistoryLimit"},
		{name: "a negative history", reconcilerName: "a", options: ReconcilerOptions{
			Revisions: RevisionOptions{RevisionHistoryLimit: new(-1)},
		}, err: "must not be negative"},
		{name: "mistakes in the options of the setup", reconcilerName: "a", options: ReconcilerOptions{
			Controller: ControllerOptions{
				MaxConcurrentReconciles: new(0),
				LabelSelector:           &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}},
			}, Operator: OperatorOptions{ClusterUID: new("")},
		}, err: `option MaxConcurrentReconciles 0|option ClusterUID is empty|option LabelSelector: "Near"`},
		{name: "all mistakes at once", reconcilerName: "a", options: ReconcilerOptions{
			FieldOwner: new(strings.Repeat("x", 129)), DefaultServiceAccount: new("x y"), AdoptionPolicy: new(v1alpha1.AdoptionPolicy("x")),
			Objects: ObjectOptions{
				Outputs:   []Output{{Name: "a.b", Object: "["}, {Name: "c", Type: reconciler.TypeInfo{Kind: "B"}, Expression: "self."}, {Name: "c"}},
				ReadyWhen: []reconciler.ReadyWhen{{Type: reconciler.TypeInfo{Group: "a", Kind: "B"}, Expression: "self."}},
				IgnoreFields: []reconciler.IgnoreFields{
					{Type: reconciler.TypeInfo{Group: "c", Kind: "D"}, Paths: []string{"spec.replicas", "/metadata/name"}},
					{Selector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "k", Operator: "Near"}}}},
				},
				SharedTypes: []string{"shops.example.com", "Shops.example.com", "shops", "shops.example", "shops.example.com", ""},
			},
			Operator: OperatorOptions{OperatorNamespace: new("A")}, UpdatePolicy: new(v1alpha1.UpdatePolicy("")), DeletePolicy: new(v1alpha1.DeletePolicy("y")), DriftPolicy: new(v1alpha1.DriftPolicy("v")), MissingNamespacesPolicy: new(v1alpha1.MissingNamespacesPolicy("z")),
			Controller: ControllerOptions{TargetConcurrency: new(0), LeaderLock: &LeaderLock{}}, Revisions: RevisionOptions{MinReadySeconds: new(-1)}, ManagementPolicy: new(v1alpha1.ManagementPolicy("w")),
		}, err: `TargetConcurrency 0|LeaderLock is not usable|MinReadySeconds -1|FieldOwner "xx|OperatorNamespace "A"|DefaultServiceAccount "x y"|AdoptionPolicy "x"|UpdatePolicy ""|DeletePolicy "y"|DriftPolicy "v"|MissingNamespacesPolicy "z"|ManagementPolicy "w"|ReadyWhen of the type B.a` +
			`|IgnoreFields of the type D.c: "spec.replicas" is not a JSON pointer|"/metadata/name" identifies the object|the kind is missing|selector: "Near" is not a valid label selector operator|names no field` +
			`|SharedTypes "Shops.example.com": must be the name|SharedTypes "shops": must be|SharedTypes "shops.example": must be|SharedTypes "shops.example.com": is there twice|SharedTypes "": must be` +
			`|option Outputs, output a.b: the name of an output has 1 to 40|the kind of the object is missing|the name of the object "["|the expression is missing|output c: "self.": character|the name is given twice`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := resolveOptions(test.reconcilerName, test.options)
			if test.err != "" {
				checkMistakes(t, err, test.err)
				return
			}
			check(t, err)
			if got.ownLimiter == nil || got.rateLimiter != got.ownLimiter {
				t.Error("the rate limiter is not the default")
			}
			got.ownLimiter, got.rateLimiter = nil, nil
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(settings{})); diff != "" {
				t.Errorf("settings (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTheCanariesOfTheOptionReachTheLimitsOfARollout(t *testing.T) {
	got, err := resolveOptions("a", ReconcilerOptions{Revisions: RevisionOptions{Rollout: &Rollout{
		MaxUnavailable: intstr.FromInt32(1), Canaries: &metav1.LabelSelector{MatchLabels: map[string]string{"tier": "canary"}},
	}}})
	check(t, err)
	if got := got.rollout.Canaries.String(); got != "tier=canary" {
		t.Errorf("canaries %q", got)
	}
}

func TestAccess(t *testing.T) {
	tests := []struct {
		name           string
		serviceAccount *string
		namespace      string
		component      Component
		want           target.Access
		err            string
	}{
		{name: "the operator itself", component: newWidget()},
		{name: "the default service account", serviceAccount: new("deployer"), component: newWidget(),
			want: target.Access{User: "system:serviceaccount:shop:deployer"}},
		{name: "the service account of the spec", serviceAccount: new("deployer"), component: withSpec(widgetSpec{ImpersonationSpec: ImpersonationSpec{"own"}}),
			want: target.Access{User: "system:serviceaccount:shop:own"}},
		{name: "a user with groups", component: &impersonator{widget: *newWidget(), user: "jane", groups: []string{"a"}},
			want: target.Access{User: "jane", Groups: []string{"a"}}},
		{name: "a service account of another namespace", component: &impersonator{widget: *newWidget(), user: "system:serviceaccount:other:x"},
			want: target.Access{User: "system:serviceaccount:other:x"}},
		{name: "half a service account", component: &impersonator{widget: *newWidget(), user: "system:serviceaccount:x"}, err: "is no service account"},
		{name: "groups without a user", component: &impersonator{widget: *newWidget(), groups: []string{"a"}}, err: "without a user"},
		{name: "a default service account for a component without a namespace", serviceAccount: new("deployer"), component: &widget{}, err: "without a namespace"},
		{name: "a namespace that is none", component: &impersonator{widget: *newWidget(), user: "system:serviceaccount:kube/system:x"}, err: `namespace "kube/system"`},
		{name: "a service account that names a namespace", component: withSpec(widgetSpec{ImpersonationSpec: ImpersonationSpec{"kube-system:admin"}}), err: `service account "kube-system:admin"`},
		{name: "a path", component: withSpec(widgetSpec{ImpersonationSpec: ImpersonationSpec{"../x"}}), err: `service account "../x"`},
		{name: "a long name", component: withSpec(widgetSpec{ImpersonationSpec: ImpersonationSpec{strings.Repeat("x", 300)}}), err: "must be no more than 253"},
		{name: "a kubeconfig that is not there is not the local cluster", component: withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{}}}), want: target.Access{Kubeconfig: []byte{}}},
		{name: "the default service account is for the local cluster", serviceAccount: new("deployer"), component: &elsewhere{widget: *newWidget(), kubeConfig: []byte("x")},
			want: target.Access{Kubeconfig: []byte("x")}},
		{name: "impersonation in another cluster", serviceAccount: new("deployer"), component: &elsewhere{widget: *withSpec(widgetSpec{ImpersonationSpec: ImpersonationSpec{"own"}}), kubeConfig: []byte("x")},
			want: target.Access{Kubeconfig: []byte("x"), User: "system:serviceaccount:shop:own"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := accessOf(test.component, testSettings(t, ReconcilerOptions{DefaultServiceAccount: test.serviceAccount}))
			if test.err != "" {
				checkMistakes(t, err, test.err)
				return
			}
			check(t, err)
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("access (-want +got):\n%s", diff)
			}
		})
	}
}

func withSpec(spec widgetSpec) *widget {
	obj := newWidget()
	obj.Spec = spec
	return obj
}

// elsewhere has a kubeconfig of its own making.
type elsewhere struct {
	widget
	kubeConfig []byte
}

func (e *elsewhere) GetKubeConfig() []byte { return e.kubeConfig }

type impersonator struct {
	widget
	user   string
	groups []string
}

func (i *impersonator) GetImpersonationUser() string     { return i.user }
func (i *impersonator) GetImpersonationGroups() []string { return i.groups }

func TestOperatorNamespace(t *testing.T) {
	tests := []struct {
		name           string
		option         *string
		variable, file string
		want, err      string
	}{
		{name: "outside of a cluster", want: "default"},
		{name: "in a pod", file: "operators\n", want: "operators"},
		{name: "the variable comes before the file", variable: "mine", file: "operators", want: "mine"},
		{name: "the option comes first", option: new("chosen"), variable: "mine", file: "operators", want: "chosen"},
		{name: "an empty option is a mistake", option: new(""), variable: "mine", err: `option OperatorNamespace ""`},
		{name: "a bad option", option: new("a/b"), err: `option OperatorNamespace "a/b"`},
		{name: "a bad variable", variable: "A", err: `variable POD_NAMESPACE "A"`},
		{name: "a bad file", file: "a b", err: `namespace "a b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "namespace")
			if test.file != "" {
				check(t, os.WriteFile(file, []byte(test.file), 0o600))
			}
			t.Setenv("POD_NAMESPACE", test.variable)
			got, err := operatorNamespace(test.option, file)
			if test.err != "" {
				checkMistakes(t, err, test.err)
			} else if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

// headless has no status.
type headless struct{ widget }

func (h *headless) GetStatus() *Status { return nil }

// explosive has methods that do not survive an empty component.
type explosive struct{ widget }

func (e *explosive) GetStatus() *Status { panic("oh") }

func TestWiringMistakesAreErrorsOfTheSetup(t *testing.T) {
	good := manifests.GeneratorFunc(nothing)
	var noHook HookFunc[*widget]
	tests := []struct {
		name  string
		setup func() error
		err   string
	}{
		{"all mistakes at once", func() error {
			return NewReconciler[*widget]("Shop!", nil, ReconcilerOptions{Finalizer: new("orphan")}).
				WithPostReadHook(noHook).WithPreReconcileHook(noHook).WithPostReconcileHook(noHook).
				WithPreDeleteHook(noHook).WithPostDeleteHook(noHook).setUpNowhere()
		}, `reconciler name "Shop!"|resource generator: the generator is nil|Finalizer "orphan"|post-read hook 1 is nil|` +
			"pre-reconcile hook 1 is nil|post-reconcile hook 1 is nil|pre-delete hook 1 is nil|post-delete hook 1 is nil"},
		{"no manager", func() error {
			return NewReconciler[*widget]("a", good, ReconcilerOptions{}).SetupWithManager(nil)
		}, "set up reconciler a: the manager is nil"},
		{"no builder", func() error {
			return NewReconciler[*widget]("a", good, ReconcilerOptions{}).SetupWithManagerAndBuilder(nowhere{}, nil)
		}, "set up reconciler a: the builder is nil"},
		{"no pointer to a struct", func() error {
			return NewReconciler[Component]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "component.Component: must be a pointer to a struct"},
		{"a component without a status", func() error {
			return NewReconciler[*headless]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "GetStatus must not return nil"},
		{"a component without a spec", func() error {
			return NewReconciler[*specless]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "GetSpec must not return nil"},
		{"a component with methods that panic", func() error {
			return NewReconciler[*explosive]("a", good, ReconcilerOptions{}).setUpNowhere()
		}, "a method of an empty component panicked: oh"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) { checkMistakes(t, test.setup(), test.err) })
	}
}

// nowhere is a manager that must not be asked for anything.
type nowhere struct{ ctrl.Manager }

// setUpNowhere is for reconcilers with mistakes, which are found without a manager.
func (r *Reconciler[T]) setUpNowhere() error {
	return r.SetupWithManagerAndBuilder(nowhere{}, &ctrl.Builder{})
}

func TestBeforeTheSetup(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	if _, err := r.Reconcile(t.Context(), ctrl.Request{}); !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("Reconcile: %v", err)
	}
	if err := r.Trigger("shop", "main"); err == nil {
		t.Error("Trigger before the setup is no error")
	}
}

func TestHookAfterTheSetup(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	r.running.Store(&running{})
	checkMistakes(t, r.SetupWithManagerAndBuilder(nowhere{}, &ctrl.Builder{}), "set up before")
	r.WithPreDeleteHook(func(context.Context, client.Client, *widget) error { return nil })
	_, err := r.Reconcile(t.Context(), ctrl.Request{})
	if !errors.Is(err, reconcile.TerminalError(nil)) {
		t.Errorf("error %v", err)
	}
	checkMistakes(t, err, "a pre-delete hook was registered after the setup")
}

func TestTriggerNeverBlocks(t *testing.T) {
	r := NewReconciler[*widget]("a", manifests.GeneratorFunc(nothing), ReconcilerOptions{})
	r.running.Store(&running{triggers: trigger.New()})
	for i := range trigger.MaxWaiting {
		check(t, r.Trigger("shop", strconv.Itoa(i)))
	}
	if err := r.Trigger("shop", "0"); err != nil {
		t.Errorf("of one that waits already: %v", err)
	}
	if err := r.Trigger("shop", "one-more"); !errors.Is(err, ErrTriggersFull) {
		t.Errorf("error %v", err)
	}
}

// configured is a manager with options for its controllers.
type configured struct {
	ctrl.Manager
	options config.Controller
}

func (c configured) GetControllerOptions() config.Controller { return c.options }

func TestConcurrency(t *testing.T) {
	tests := []struct {
		name    string
		options ReconcilerOptions
		manager config.Controller
		want    int // 0 leaves it to the manager
	}{
		{name: "five by default", want: 5},
		{name: "the option", options: ReconcilerOptions{Controller: ControllerOptions{MaxConcurrentReconciles: new(9)}}, want: 9},
		{name: "the manager's", manager: config.Controller{MaxConcurrentReconciles: 3}},
		{name: "the manager's for the kind", manager: config.Controller{GroupKindConcurrency: map[string]int{"Widget": 2}}},
		{name: "the option before the manager's", options: ReconcilerOptions{Controller: ControllerOptions{MaxConcurrentReconciles: new(1)}}, manager: config.Controller{MaxConcurrentReconciles: 3}, want: 1},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := testSettings(t, test.options)
			if got := s.controllerOptions(configured{options: test.manager}); got.MaxConcurrentReconciles != test.want || got.RateLimiter == nil {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestRateLimiter(t *testing.T) {
	own := workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Second, time.Minute)
	s := testSettings(t, ReconcilerOptions{Controller: ControllerOptions{RateLimiter: own}})
	if s.controllerOptions(configured{}).RateLimiter != own {
		t.Error("the option is ignored")
	}
}

func TestOnlyEventsOfTheShardPass(t *testing.T) {
	selector := testSettings(t, ReconcilerOptions{Controller: ControllerOptions{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shard": "a"}}}}).selector
	of := func(shard string) *widget {
		w := newWidget()
		w.Labels = map[string]string{"shard": shard}
		return w
	}
	p := inShard(selector)
	for name, got := range map[string]bool{
		"created":          p.Create(event.CreateEvent{Object: of("a")}),
		"deleted":          p.Delete(event.DeleteEvent{Object: of("a")}),
		"updated":          p.Update(event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("a")}),
		"came":             p.Update(event.UpdateEvent{ObjectOld: of("b"), ObjectNew: of("a")}),
		"left":             p.Update(event.UpdateEvent{ObjectOld: of("a"), ObjectNew: of("b")}),
		"everything":       inShard(nil).Create(event.CreateEvent{Object: of("b")}),
		"not created":      !p.Create(event.CreateEvent{Object: of("b")}),
		"not deleted":      !p.Delete(event.DeleteEvent{Object: newWidget()}),
		"not updated":      !p.Update(event.UpdateEvent{ObjectOld: of("b"), ObjectNew: of("c")}),
		"not without both": !p.Update(event.UpdateEvent{}),
	} {
		if !got {
			t.Error(name)
		}
	}
}

func TestRequestsAreThrottledOnlyIfTheConfigurationSaysSo(t *testing.T) {
	limiter := flowcontrol.NewFakeAlwaysRateLimiter()
	tests := []struct {
		name   string
		config rest.Config
		want   float32
	}{
		{"nothing said", rest.Config{}, -1},
		{"a pace", rest.Config{QPS: 20}, 20},
		{"a negative pace, which is none", rest.Config{QPS: -5, Burst: -5}, -5},
		{"a limiter", rest.Config{RateLimiter: limiter}, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			before := test.config.QPS
			got := unthrottled(&test.config)
			if got.QPS != test.want || got.RateLimiter != test.config.RateLimiter || test.config.QPS != before {
				t.Errorf("%v requests per second, limiter %v; the manager's configuration became %v", got.QPS, got.RateLimiter, test.config.QPS)
			}
			got.Host = "https://127.0.0.1:1"
			if _, err := rest.HTTPClientFor(got); err != nil {
				t.Error(err)
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
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
			sharedTypes: []string{"shops.example.com"},
			management:  v1alpha1.ManagementPolicySkip, ofNamespaces: true, targetConcurrency: 3, historyLimit: 3, rollbackOnFailure: true, operatorNamespace: "elsewhere", Operator: identity.Operator{Name: "shop.example.com", FieldOwner: "owner", Finalizer: "shop.example.com/finalizer"}, serviceAccount: "deployer",
			policies: reconciler.Policies{
				Adoption: v1alpha1.AdoptionPolicyAlways, Update: v1alpha1.UpdatePolicySsaOverride, Drift: v1alpha1.DriftPolicyReport,
				Delete: v1alpha1.DeletePolicyOrphanOnDelete, MissingNamespaces: v1alpha1.MissingNamespacesPolicyDoNotCreate,
			}}},
		{name: "no name", err: `reconciler name ""|option FieldOwner ""|option Finalizer ""`},
		{name: "an illegal name", reconcilerName: "Shop!", err: `reconciler name "Shop!"`},
		{name: "a name that is too long for a finalizer", reconcilerName: long, err: "option Finalizer"},
		{name: "a long name with another finalizer", reconcilerName: long, options: ReconcilerOptions{Finalizer: new(long + "/f")}, want: defaults(long, long+"/f")},
		{name: "a finalizer of the server", reconcilerName: "a", options: ReconcilerOptions{Finalizer: new("orphan")}, err: "belongs to the API server"},
		{name: "all mistakes at once", reconcilerName: "a", options: ReconcilerOptions{
			FieldOwner: new(strings.Repeat("x", 129)), DefaultServiceAccount: new("x y"), AdoptionPolicy: new(v1alpha1.AdoptionPolicy("x")),
			Objects: ObjectOptions{
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
			`|SharedTypes "Shops.example.com": must be the name|SharedTypes "shops": must be|SharedTypes "shops.example": must be|SharedTypes "shops.example.com": is there twice|SharedTypes "": must be`},
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

func TestARollbackOnFailureNeedsAHistory(t *testing.T) {
	_, err := resolveOptions("shop.example.com", ReconcilerOptions{Revisions: RevisionOptions{RevisionHistoryLimit: new(0), RollbackOnFailure: true}})
	if err == nil || !strings.Contains(err.Error(), "RollbackOnFailure needs a RevisionHistoryLimit") {
		t.Errorf("%v", err)
	}
	if _, err := resolveOptions("shop.example.com", ReconcilerOptions{Revisions: RevisionOptions{RevisionHistoryLimit: new(-1)}}); err == nil || !strings.Contains(err.Error(), "must not be negative") {
		t.Errorf("%v", err)
	}
}

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
		{name: "a bad file", file: "a b", err: `file /var/run/secrets/kubernetes.io/serviceaccount/namespace "a b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := operatorNamespace(test.option, surroundings{
				getenv: func(string) string { return test.variable },
				readFile: func(string) ([]byte, error) {
					if test.file == "" {
						return nil, errors.New("no such file")
					}
					return []byte(test.file), nil
				},
			})
			if test.err != "" {
				checkMistakes(t, err, test.err)
			} else if err != nil || got != test.want {
				t.Errorf("got %q, %v; want %q", got, err, test.want)
			}
		})
	}
}

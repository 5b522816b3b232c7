// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/check"
)

func TestPrecedence(t *testing.T) {
	component := Layer{Update: v1alpha1.UpdatePolicySsaMerge, Drift: "report", Reapply: time.Hour}
	options := Layer{Update: v1alpha1.UpdatePolicyRecreate, Delete: v1alpha1.DeletePolicyOrphan, Adoption: "always", Drift: v1alpha1.DriftPolicyIgnore, Reapply: 2 * time.Hour}

	defaults := check.Must(Defaults(component, options))(t)
	want := Set{
		Adoption:  v1alpha1.AdoptionPolicyAlways,
		Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
		Update:    v1alpha1.UpdatePolicySsaMerge,
		Delete:    v1alpha1.DeletePolicyOrphan,
		Drift:     v1alpha1.DriftPolicyReport,
		Reapply:   time.Hour,
	}
	check.EqualNamed(t, "the component comes before the options", want, defaults)

	got := check.Must(Parse(prefix, annotate("update-policy", "ssa-override", "drift-policy", "ignore", "reapply-interval", "5m"), defaults))(t)
	want.Update, want.Drift, want.Reapply = v1alpha1.UpdatePolicySsaOverride, v1alpha1.DriftPolicyIgnore, 5*time.Minute
	check.EqualNamed(t, "the annotation comes before both", want, got)
}

func TestDefaultsWithoutLayers(t *testing.T) {
	got := check.Must(Defaults())(t)
	check.Equal(t, builtin(nil), got)
}

func TestDefaultsListAllMistakes(t *testing.T) {
	_, err := Defaults(
		Layer{Adoption: "x", Reapply: time.Second},
		Layer{Reconcile: "y", Update: "z", Delete: "w", Drift: "v"},
	)
	check.Fails(t, err,
		`adoption policy: "x" is not one of`, `reconcile policy: "y"`, `update policy: "z"`, `delete policy: "w"`, `drift policy: "v" is not one of repair, report, ignore`,
		"reapply interval 1s is shorter than 1m0s",
	)
}

func TestParseMissingNamespaces(t *testing.T) {
	for value, want := range map[v1alpha1.MissingNamespacesPolicy]v1alpha1.MissingNamespacesPolicy{
		"":              v1alpha1.MissingNamespacesPolicyCreate,
		"Create":        v1alpha1.MissingNamespacesPolicyCreate,
		"do-not-create": v1alpha1.MissingNamespacesPolicyDoNotCreate,
		"DoNotCreate":   v1alpha1.MissingNamespacesPolicyDoNotCreate,
	} {
		got, err := ParseMissingNamespaces(value)
		if err != nil || got != want {
			t.Errorf("%q: got %q, %v", value, got, err)
		}
	}
	if _, err := ParseMissingNamespaces("maybe"); err == nil {
		t.Error("accepted maybe")
	}
}

func TestReferencesComeBackFromTheirText(t *testing.T) {
	tests := []struct {
		text string
		want Reference
		form string
	}{
		{"apps/Deployment/shop/api", Reference{"apps", "Deployment", "shop", "api"}, "apps/Deployment/shop/api"},
		{"apps/Deployment/api", Reference{"apps", "Deployment", "", "api"}, "apps/Deployment/api"},
		{"/Secret/shop/db", Reference{"", "Secret", "shop", "db"}, "Secret/shop/db"},
		{"Secret/shop/db", Reference{"", "Secret", "shop", "db"}, "Secret/shop/db"},
		{"Secret/db", Reference{"", "Secret", "", "db"}, "Secret/db"},
		{"apps/Deployment//api", Reference{"apps", "Deployment", "", "api"}, "apps/Deployment/api"},
		{"rbac.authorization.k8s.io/ClusterRole/system:reader", Reference{"rbac.authorization.k8s.io", "ClusterRole", "", "system:reader"}, "rbac.authorization.k8s.io/ClusterRole/system:reader"},
		{"/kind/ns/name", Reference{"", "kind", "ns", "name"}, "/kind/ns/name"},
	}
	for _, tt := range tests {
		got, err := ParseReference(tt.text)
		if err != nil || got != tt.want {
			t.Errorf("%s: got %#v, %v", tt.text, got, err)
		}
		check.SameNamed(t, tt.text+": printed as", tt.form, got.String())
	}
}

func TestAnObjectIsNotTakenOverIfItsOwnManifestSaysSo(t *testing.T) {
	defaults, err := Defaults(Layer{Adoption: v1alpha1.AdoptionPolicyNever, AdoptFrom: []string{HelmRelease("market", "corner")}}, Layer{AdoptFrom: []string{"other"}})
	if err != nil || !slices.Equal(defaults.AdoptFrom, []string{"Helm release market/corner"}) {
		t.Fatalf("%+v, %v", defaults, err)
	}
	for value, taken := range map[string]bool{"": true, "if-unowned": true, "always": true, "never": false, "ignore": false} {
		annotations := map[string]string{}
		if value != "" {
			annotations["test.corbel.run/adoption-policy"] = value
		}
		set, err := Parse("test.corbel.run", annotations, defaults)
		if err != nil || (len(set.AdoptFrom) > 0) != taken {
			t.Errorf("%q: taken from %q, %v", value, set.AdoptFrom, err)
		}
	}
}

func TestAnnotationsOfOtherToolsOnlyAddProtection(t *testing.T) {
	const (
		unset    = v1alpha1.DeletePolicy("")
		deleted  = v1alpha1.DeletePolicyDelete
		orphan   = v1alpha1.DeletePolicyOrphan
		onApply  = v1alpha1.DeletePolicyOrphanOnApply
		onDelete = v1alpha1.DeletePolicyOrphanOnDelete
	)
	tests := map[string]struct {
		key, value   string
		before, want v1alpha1.DeletePolicy
	}{
		"Helm":                                {annotationHelm, "keep", deleted, orphan},
		"Helm, as loosely as Helm reads it":   {annotationHelm, " Keep\n", deleted, orphan},
		"Helm, another value":                 {annotationHelm, "delete", deleted, deleted},
		"cli-utils":                           {annotationLifecycle, "detach", deleted, orphan},
		"cli-utils, another value":            {annotationLifecycle, "keep", deleted, deleted},
		"cli-utils, on-remove":                {annotationOnRemove, "keep", deleted, orphan},
		"Flux":                                {labelFlux, "disabled", deleted, orphan},
		"Flux, enabled":                       {labelFlux, "enabled", deleted, deleted},
		"Argo CD prunes it not":               {annotationArgo, "Prune=false", deleted, onApply},
		"Argo CD deletes it not":              {annotationArgo, "Delete=false", deleted, onDelete},
		"Argo CD does neither":                {annotationArgo, "ServerSideApply=true, Prune=false,Delete=false", deleted, orphan},
		"Argo CD asks before":                 {annotationArgo, "Prune=confirm,Delete=confirm", deleted, orphan},
		"Argo CD does both":                   {annotationArgo, "Prune=true,PruneLast=true", deleted, deleted},
		"the default protects on deletion":    {annotationArgo, "Prune=false", onDelete, orphan},
		"the default protects on application": {annotationArgo, "Delete=false", onApply, orphan},
		"the default protects always":         {annotationArgo, "Prune=false", orphan, orphan},
		"nothing is set":                      {"", "", unset, unset},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			got := Set{Delete: test.before}.WithKeep(nil, map[string]string{test.key: test.value})
			check.Same(t, test.want, got.Delete)
			own, err := Parse(prefix, annotate("delete-policy", "delete"), got)
			if err != nil || own.Delete != deleted {
				t.Errorf("the annotation of the reconciler gives %q (%v)", own.Delete, err)
			}
		})
	}
	if got := (Set{}).WithKeep(map[string]string{labelFlux: "disabled"}, nil); got.Delete != orphan {
		t.Errorf("the label of Flux gives %q", got.Delete)
	}
}

func TestIgnoreRulesAndTheAnnotationAddUp(t *testing.T) {
	everything := labels.Everything()
	rules := []IgnoreRule{
		{Type: v1alpha1.TypeInfo{Group: "apps", Kind: "*"}, Selector: everything, Fields: []string{"/spec/replicas", "/spec/a"}},
		{Type: v1alpha1.TypeInfo{Group: "*", Kind: "Deployment"}, Selector: labels.SelectorFromSet(labels.Set{"app": "api"}), Fields: []string{"/spec/replicas", "/spec/b"}},
		{Type: v1alpha1.TypeInfo{Group: "batch", Kind: "*"}, Selector: everything, Fields: []string{"/spec/never"}},
	}
	defaults := Set{}.WithIgnoreRules(rules, "apps", "Deployment", map[string]string{"app": "api"})
	got := check.Must(Parse(prefix, annotate("ignore-fields", "/spec/c,/spec/a"), defaults))(t)
	check.Equal(t, []string{"/spec/a", "/spec/b", "/spec/c", "/spec/replicas"}, got.IgnoreFields)
	other := Set{}.WithIgnoreRules(rules, "apps", "Deployment", nil)
	check.EqualNamed(t, "without the label", []string{"/spec/a", "/spec/replicas"}, other.IgnoreFields)
}

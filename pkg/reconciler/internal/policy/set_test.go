// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func TestPrecedence(t *testing.T) {
	component := Layer{Update: v1alpha1.UpdatePolicySsaMerge, Drift: "report", Reapply: time.Hour}
	options := Layer{Update: v1alpha1.UpdatePolicyRecreate, Delete: v1alpha1.DeletePolicyOrphan, Adoption: "always", Drift: v1alpha1.DriftPolicyIgnore, Reapply: 2 * time.Hour}

	defaults, err := Defaults(component, options)
	if err != nil {
		t.Fatal(err)
	}
	want := Set{
		Adoption:  v1alpha1.AdoptionPolicyAlways,
		Reconcile: v1alpha1.ReconcilePolicyOnObjectChange,
		Update:    v1alpha1.UpdatePolicySsaMerge,
		Delete:    v1alpha1.DeletePolicyOrphan,
		Drift:     v1alpha1.DriftPolicyReport,
		Reapply:   time.Hour,
	}
	if diff := cmp.Diff(want, defaults); diff != "" {
		t.Error("the component comes before the options:", diff)
	}

	got, err := Parse(prefix, annotate("update-policy", "ssa-override", "drift-policy", "ignore", "reapply-interval", "5m"), defaults)
	if err != nil {
		t.Fatal(err)
	}
	want.Update, want.Drift, want.Reapply = v1alpha1.UpdatePolicySsaOverride, v1alpha1.DriftPolicyIgnore, 5*time.Minute
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error("the annotation comes before both:", diff)
	}
}

func TestDefaultsWithoutLayers(t *testing.T) {
	got, err := Defaults()
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(builtin(nil), got); diff != "" {
		t.Error(diff)
	}
}

func TestDefaultsListAllMistakes(t *testing.T) {
	_, err := Defaults(
		Layer{Adoption: "x", Reapply: time.Second},
		Layer{Reconcile: "y", Update: "z", Delete: "w", Drift: "v"},
	)
	if err == nil {
		t.Fatal("accepted")
	}
	for _, want := range []string{
		`adoption policy: "x" is not one of`, `reconcile policy: "y"`, `update policy: "z"`, `delete policy: "w"`, `drift policy: "v" is not one of repair, report, ignore`,
		"reapply interval 1s is shorter than 1m0s",
	} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q lacks %q", err, want)
		}
	}
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
		if got.String() != tt.form {
			t.Errorf("%s: printed as %s", tt.text, got)
		}
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

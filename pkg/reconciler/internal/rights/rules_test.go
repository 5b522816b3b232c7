// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestMissingRightsAreRulesToPaste(t *testing.T) {
	missing := Aggregate([]Right{
		{Resource: "configmaps", Namespace: "shop", Verb: "create"}, {Resource: "configmaps", Namespace: "shop", Verb: "get"},
		{Resource: "services", Namespace: "shop", Verb: "get"}, {Resource: "services", Namespace: "shop", Verb: "create"},
		{Group: "apps", Resource: "deployments", Namespace: "shop", Verb: "delete"},
		{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "bind", Name: "view"},
		{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "bind", Name: "system:edit"},
		{Group: "*", Resource: "*", Verb: "*"},
	})
	const want = `in the cluster rules: [{apiGroups: ['*'], resources: ['*'], verbs: ['*']}, ` +
		`{apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: ['system:edit', view], verbs: [bind]}]; ` +
		`in namespace shop rules: [{apiGroups: [''], resources: [configmaps, services], verbs: [get, create]}, ` +
		`{apiGroups: [apps], resources: [deployments], verbs: [delete]}]`
	if got := missing.String(); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if missing.Count() != 4 {
		t.Errorf("%d rules", missing.Count())
	}
	// A log in JSON shows the same text.
	if logged, err := json.Marshal(want); err != nil || string(logged) != `"`+want+`"` {
		t.Errorf("a line of a log has %s, %v", logged, err)
	}
	for i, text := range strings.Split(missing.String(), "; in ") {
		_, text, _ = strings.Cut(text, " rules: ")
		var pasted []rbacv1.PolicyRule
		if err := yaml.UnmarshalStrict([]byte(text), &pasted); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if diff := cmp.Diff(missing[i].Rules, pasted); diff != "" {
			t.Errorf("pasted (-want +got):\n%s", diff)
		}
	}
}

func TestQuotedNamesAreTheSameInYAML(t *testing.T) {
	for _, name := range []string{"", "*", "system:edit", "it's", `a"b\c`, "two\nlines", "null", "1"} {
		var read []string
		if err := yaml.UnmarshalStrict([]byte(list([]string{name})), &read); err != nil || len(read) != 1 || read[0] != name {
			t.Errorf("%q is written %s and read %q, %v", name, list([]string{name}), read, err)
		}
	}
}

func TestListedRules(t *testing.T) {
	rule := func(group, resource, verbs string, names ...string) authorizationv1.ResourceRule {
		return authorizationv1.ResourceRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: strings.Fields(verbs), ResourceNames: names}
	}
	list := listing{
		resources:    []authorizationv1.ResourceRule{rule("", "configmaps", "get create"), rule("apps", "*", "get"), rule("", "secrets", "get", "a"), rule("*", "*/scale", "update")},
		nonResources: []authorizationv1.NonResourceRule{{NonResourceURLs: []string{"/metrics", "/debug/*"}, Verbs: []string{"get"}}},
	}
	for right, want := range map[Right]bool{
		{Resource: "configmaps", Verb: "get"}:                               true,
		{Resource: "configmaps", Verb: "delete"}:                            false,
		{Group: "apps", Resource: "deployments", Verb: "get"}:               true,
		{Group: "apps", Resource: "deployments/scale", Verb: "update"}:      true,
		{Resource: "secrets", Verb: "get"}:                                  false,
		{Resource: "secrets", Verb: "get", Name: "a"}:                       true,
		{Resource: "secrets", Verb: "get", Name: "b"}:                       false,
		{Group: "batch", Resource: "configmaps", Verb: "get"}:               false,
		{Group: "*", Resource: "*", Verb: "*"}:                              false,
		{Group: "apps", Resource: "statefulsets", Verb: "get", Name: "any"}: true,
	} {
		if got := list.covers(right); got != want {
			t.Errorf("%+v: listed: %t", right, got)
		}
	}
	for name, c := range map[string]struct {
		rule rbacv1.PolicyRule
		want bool
	}{
		"held":            {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "create"}}, true},
		"one verb more":   {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "patch"}}, false},
		"one object":      {rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}, ResourceNames: []string{"a"}}, true},
		"a URL":           {rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics", "/debug/pprof"}, Verbs: []string{"get"}}, true},
		"another URL":     {rbacv1.PolicyRule{NonResourceURLs: []string{"/healthz"}, Verbs: []string{"get"}}, false},
		"nothing is held": {rbacv1.PolicyRule{}, false},
	} {
		if got := list.holds(c.rule); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

// known are the types of the tests.
func known(gvk schema.GroupVersionKind) (cluster.Resource, bool) {
	resources := map[string]string{"ConfigMap": "configmaps", "Role": "roles", "RoleBinding": "rolebindings", "CustomResourceDefinition": "customresourcedefinitions", "Namespace": "namespaces"}
	plural, ok := resources[gvk.Kind]
	return cluster.Resource{GVR: gvk.GroupVersion().WithResource(plural), Kind: gvk.Kind, Namespaced: gvk.Kind != "CustomResourceDefinition" && gvk.Kind != "Namespace"}, ok
}

func desired(group, kind, namespace, name string, content map[string]any) plan.Desired {
	return plan.Desired{
		Key: plan.Key{Group: group, Kind: kind, Namespace: namespace, Name: name}, Version: "v1", Digest: "1",
		Policies: policy.Set{Update: v1alpha1.UpdatePolicyReplace, Delete: v1alpha1.DeletePolicyDelete},
		Manifest: &unstructured.Unstructured{Object: content},
	}
}

func TestNeedsFollowTheObjectsAndTheirPolicies(t *testing.T) {
	rules := []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}}}
	to := func(kind, name string) map[string]any {
		return map[string]any{"roleRef": map[string]any{"apiGroup": rbacv1.GroupName, "kind": kind, "name": name}}
	}
	merged := desired("", "ConfigMap", "shop", "b", nil)
	merged.Policies.Update, merged.Policies.Delete = v1alpha1.UpdatePolicySsaMerge, v1alpha1.DeletePolicyOrphan
	taken, reported, left := desired("", "ConfigMap", "shop", "a", nil), desired("", "ConfigMap", "shop", "a", nil), desired("", "ConfigMap", "shop", "a", nil)
	taken.Policies.Adoption, reported.Policies.Drift = v1alpha1.AdoptionPolicyAlways, v1alpha1.DriftPolicyReport
	left.Policies.Delete = v1alpha1.DeletePolicyOrphanOnApply
	crd := desired("apiextensions.k8s.io", "CustomResourceDefinition", "", "foos.example.com", map[string]any{"spec": map[string]any{
		"group": "example.com", "names": map[string]any{"plural": "foos"}}})
	crd.Defines = []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}
	applied := desired(rbacv1.GroupName, "Role", "shop", "applied", map[string]any{"rules": rules})
	existing := desired(rbacv1.GroupName, "Role", "shop", "existing", map[string]any{"rules": rules})
	unknown := desired(rbacv1.GroupName, "RoleBinding", "shop", "to-view", to("ClusterRole", "view"))
	for name, c := range map[string]struct {
		in      plan.Input
		context Context
		want    string
		grants  []string
	}{
		"replaced": {in: plan.Input{Desired: []plan.Desired{desired("", "ConfigMap", "shop", "a", nil)}},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, update, delete]}]`},
		"merged, orphaned and watched": {in: plan.Input{Desired: []plan.Desired{merged}}, context: Context{Watched: true},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, list, watch, create, patch]}]`},
		"recorded only": {in: plan.Input{Cause: plan.Deleting, Recorded: []v1alpha1.InventoryItem{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}}},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, delete]}]`},
		"adopted from others, and their label and annotation are removed": {in: plan.Input{Desired: []plan.Desired{taken}},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, update, patch, delete]}]`},
		"reported, and its ownership is restored": {in: plan.Input{Desired: []plan.Desired{reported}},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, update, patch, delete]}]`},
		"orphaned or deleted": {in: plan.Input{Desired: []plan.Desired{left}},
			want: `in namespace shop rules: [{apiGroups: [''], resources: [configmaps], verbs: [get, create, update, patch, delete]}]`},
		"a missing namespace": {in: plan.Input{Live: map[plan.Key]plan.Observation{{Kind: "Namespace", Name: "shop"}: {Existence: plan.Absent}}},
			want: `in the cluster rules: [{apiGroups: [''], resources: [namespaces], verbs: [get, create, patch, delete]}]`},
		"a namespace that may not be read, and may exist": {in: plan.Input{Live: map[plan.Key]plan.Observation{{Kind: "Namespace", Name: "shop"}: {Forbidden: true}}}},
		"a missing namespace that may not be read": {in: plan.Input{Live: map[plan.Key]plan.Observation{{Kind: "Namespace", Name: "shop"}: {Forbidden: true}}},
			context: Context{Refused: map[plan.Key]bool{{Kind: "Namespace", Name: "shop"}: true}},
			want:    `in the cluster rules: [{apiGroups: [''], resources: [namespaces], verbs: [get, create, patch, delete]}]`},
		"a type that is not served yet": {in: plan.Input{Desired: []plan.Desired{desired("example.com", "Foo", "shop", "a", nil)}}},
		"a type": {in: plan.Input{Desired: []plan.Desired{crd}},
			want: `in the cluster rules: [{apiGroups: [apiextensions.k8s.io], resources: [customresourcedefinitions], verbs: [get, create, update, delete]}, {apiGroups: [example.com], resources: [foos], verbs: [list]}]`},
		"a role and a binding to it": {
			in: plan.Input{Desired: []plan.Desired{
				desired(rbacv1.GroupName, "Role", "shop", "reader", map[string]any{"rules": rules}),
				desired(rbacv1.GroupName, "RoleBinding", "shop", "reader", to("Role", "reader")), unknown,
			}},
			want:   `in namespace shop rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [get, create, update, delete]}]`,
			grants: []string{"escalate roles shop/: 1", "bind roles shop/reader: 1"}},
		"a role that exists": {
			in:     plan.Input{Desired: []plan.Desired{existing}, Live: map[plan.Key]plan.Observation{existing.Key: {Existence: plan.Present}}},
			want:   `in namespace shop rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [roles], verbs: [get, create, update, delete]}]`,
			grants: []string{"escalate roles shop/existing: 1"}},
		"a refused binding to a role of others, and a role that is applied": {
			in:      plan.Input{Desired: []plan.Desired{unknown, applied}, Recorded: []v1alpha1.InventoryItem{{Group: rbacv1.GroupName, Version: "v1", Kind: "Role", Namespace: "shop", Name: "applied", Digest: "1"}}},
			context: Context{Refused: map[plan.Key]bool{unknown.Key: true}},
			want:    `in namespace shop rules: [{apiGroups: [rbac.authorization.k8s.io], resources: [rolebindings, roles], verbs: [get, create, update, delete]}]`,
			grants:  []string{"bind clusterroles shop/view: 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			c.context.Known = known
			needs := Of(c.in, c.context)
			var all []Right
			for right := range needs.Rights {
				all = append(all, right)
			}
			if got := Aggregate(all).String(); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			var grants []string
			for _, g := range needs.Grants {
				grants = append(grants, g.Right.Verb+" "+g.Right.Resource+" "+g.Namespace+"/"+g.Right.Name+": "+string(rune('0'+len(g.Rules))))
			}
			if !slices.Equal(grants, c.grants) {
				t.Errorf("grants %q, want %q", grants, c.grants)
			}
		})
	}
}

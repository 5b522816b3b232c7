// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"encoding/json"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
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
	check.Same(t, want, missing.String())
	check.SameNamed(t, "rules", 4, missing.Count())
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
		check.EqualNamed(t, "pasted", missing[i].Rules, pasted)
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

func TestARefusalNamesItsRight(t *testing.T) {
	object := func(kind, namespace string, roleRef map[string]any) *unstructured.Unstructured {
		o := &unstructured.Unstructured{Object: map[string]any{"kind": kind, "metadata": map[string]any{"name": "own", "namespace": namespace}}}
		if roleRef != nil {
			o.Object["roleRef"] = roleRef
		}
		return o
	}
	const escalation = `is forbidden: user "op" (groups=["system:authenticated"]) is attempting to grant RBAC permissions not currently held: {APIGroups:[""], Resources:["pods"], Verbs:["get"]}`
	for name, c := range map[string]struct {
		message string
		written *unstructured.Unstructured
		want    Right
	}{
		"a read":       {message: `configmaps "a" is forbidden: User "op" cannot get resource "configmaps" in API group "" in the namespace "shop"`, want: Right{Resource: "configmaps", Namespace: "shop", Verb: "get"}},
		"a reason":     {message: `foos.example.com is forbidden: User "op" cannot list resource "foos" in API group "example.com" at the cluster scope: RBAC: clusterrole "x" not found`, want: Right{Group: "example.com", Resource: "foos", Verb: "list"}},
		"a part":       {message: `User "op" cannot update resource "deployments/scale" in API group "apps" in the namespace "shop"`, want: Right{Group: "apps", Resource: "deployments/scale", Namespace: "shop", Verb: "update"}},
		"a write":      {message: `User "op" cannot create resource "roles" in API group "rbac.authorization.k8s.io" in the namespace "shop"`, written: object("Role", "shop", nil), want: Right{Group: rbacv1.GroupName, Resource: "roles", Namespace: "shop", Verb: "create"}},
		"a role":       {message: escalation, written: object("Role", "shop", nil), want: Right{Group: rbacv1.GroupName, Resource: "roles", Namespace: "shop", Verb: "escalate"}},
		"of a cluster": {message: escalation, written: object("ClusterRole", "", nil), want: Right{Group: rbacv1.GroupName, Resource: "clusterroles", Verb: "escalate"}},
		"a binding": {message: escalation, written: object("RoleBinding", "shop", map[string]any{"kind": "ClusterRole", "name": "view"}),
			want: Right{Group: rbacv1.GroupName, Resource: "clusterroles", Namespace: "shop", Verb: "bind", Name: "view"}},
		"cut off":        {message: `User "op" cannot get resource "configmaps" in API group "" in the name...`},
		"a quota":        {message: `configmaps "a" is forbidden: exceeded quota: few`, written: object("ConfigMap", "shop", nil)},
		"another user":   {message: `User "op" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "shop"`},
		"a name of text": {message: `roles "User \"op\" cannot * resource \"*\" in API group \"*\" at the cluster scope" is forbidden: no`},
	} {
		got, ok := Refused(c.message, c.written)
		if ok != (c.want != Right{}) || ok && got != c.want {
			t.Errorf("%s: %+v, %t", name, got, ok)
		}
	}
}

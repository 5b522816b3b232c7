// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRights goes through the lifecycle of TestLifecycle with an operator that acts as a user
// with the rules, and expects that the server refuses no write, and no read of a type that the
// operator writes: the first such answer 403 ends the test. Other reads may be refused, as
// Corbel looks at some things that it can do without; they are logged. The operator sees
// components in all namespaces.
//
// If the field As is nil, the test grants the rules, for the whole cluster, to a user of its
// own. Otherwise As is the user of the operator, who has the rules already; that tests
// Roles in namespaces, and bindings, too.
//
// It returns, and logs, the rules that no request used. That does not mean that they are of no
// use: an operator that never repaired anything during the test did not need to.
// Left out are verbs that do not show in a request, such as bind and escalate.
func (o Operator[T]) TestRights(t testing.TB, obj T, edit func(T), rules []rbacv1.PolicyRule) (unused []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		t.Fatal("there are no rules to test: pass those of the operator's roles")
	}
	i := o.prepare(t, obj)
	if o.As == nil {
		defer i.grant(t, rules)()
	}
	i.seesAll = true
	i.interrupt = func() error {
		_, err := refused(i.record.all(0))
		return err
	}
	i.play(t, edit, &connection{}, nil)
	others, err := refused(i.record.all(0))
	if err != nil {
		t.Error(err)
	}
	if len(others) > 0 {
		t.Logf("refused, without harm:\n%s", strings.Join(others, "\n"))
	}
	unused = unusedRules(rules, i.record.all(0))
	if len(unused) > 0 {
		lines := make([]string, 0, len(unused))
		for _, r := range unused {
			lines = append(lines, fmt.Sprintf("- {apiGroups: [%q], resources: [%s], verbs: [%s]}", r.APIGroups[0], r.Resources[0], strings.Join(r.Verbs, ", ")))
		}
		t.Logf("rules that no request used:\n%s", strings.Join(lines, "\n"))
	}
	return unused
}

// grant lets the operator act as a user who has the rules. The function that it returns takes
// them back.
func (i *Installed[T]) grant(t testing.TB, rules []rbacv1.PolicyRule) func() {
	t.Helper()
	user := "operator-of-" + i.Namespace
	i.operator.As = &rest.ImpersonationConfig{UserName: user}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: user}, Rules: rules}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: user},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: user},
		Subjects:   []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
	}
	for _, obj := range []client.Object{role, binding} {
		if err := i.Client.Create(t.Context(), obj); err != nil {
			t.Fatalf("grant the rules: %v", err)
		}
	}
	i.poll(t, "the rules to be in force", func(ctx context.Context) error { return i.inForce(ctx, user, rules) })
	return func() {
		for _, obj := range []client.Object{binding, role} {
			if err := i.Client.Delete(context.WithoutCancel(t.Context()), obj); err != nil {
				t.Errorf("take back the rules: %v", err)
			}
		}
	}
}

// inForce returns an error as long as the server does not know the rules. They take effect
// together, so one is looked at.
func (i *Installed[T]) inForce(ctx context.Context, user string, rules []rbacv1.PolicyRule) error {
	n := slices.IndexFunc(rules, func(r rbacv1.PolicyRule) bool {
		return len(r.APIGroups) > 0 && len(r.Resources) > 0 && len(r.Verbs) > 0
	})
	if n < 0 {
		return nil
	}
	rule := rules[n]
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user,
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: rule.APIGroups[0], Version: "*", Resource: resource, Subresource: subresource, Verb: rule.Verbs[0],
			Name: append(slices.Clone(rule.ResourceNames), "")[0],
		},
	}}
	if err := i.Client.Create(ctx, review); err != nil {
		return err
	}
	if !review.Status.Allowed {
		return fmt.Errorf("%s may not %s %s yet: %s", user, rule.Verbs[0], rule.Resources[0], review.Status.Reason)
	}
	return nil
}

// refused returns an error that lists the requests that were answered with 403 and matter:
// all writes, and the reads of types that the operator writes. others are the rest.
func refused(requests []request) (others []string, err error) {
	written := map[schema.GroupResource]bool{}
	for _, q := range requests {
		if q.isWrite() {
			written[q.resource.GroupResource()] = true
		}
	}
	var errs []error
	seen := map[string]bool{}
	for _, q := range requests {
		if q.code != http.StatusForbidden || seen[q.String()] {
			continue
		}
		seen[q.String()] = true
		if !written[q.resource.GroupResource()] || q.looksForLostInventories() {
			others = append(others, q.String())
			continue
		}
		errs = append(errs, fmt.Errorf("%s is forbidden: the operator needs %s on %s of the API group %q",
			q, strings.Join(q.verbs(), " and "), q.resourceOfRule(), q.resource.Group))
	}
	return others, errors.Join(errs...)
}

// looksForLostInventories reports whether a request is the list of all Secrets, without
// which the inventories of components that are gone are not found.
func (q request) looksForLostInventories() bool {
	return q.method == http.MethodGet && q.resource.GroupResource() == (schema.GroupResource{Resource: "secrets"}) && q.namespace == "" && !q.watch
}

// resourceOfRule is the resource, and the subresource, as a rule has it.
func (q request) resourceOfRule() string {
	if q.subresource == "" {
		return q.resource.Resource
	}
	return q.resource.Resource + "/" + q.subresource
}

// requestVerbs are those that show in a request.
var requestVerbs = []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection"}

// unusedRules returns one rule for each group and resource with verbs that no request used.
func unusedRules(rules []rbacv1.PolicyRule, requests []request) []rbacv1.PolicyRule {
	used := func(r rbacv1.PolicyRule, group, resource, verb string) bool {
		return slices.ContainsFunc(requests, func(q request) bool {
			return q.resource.Resource != "" && (group == "*" || group == q.resource.Group) &&
				coversResource(resource, q) &&
				(verb == "*" || slices.Contains(q.verbs(), verb)) &&
				(len(r.ResourceNames) == 0 || slices.Contains(r.ResourceNames, q.name))
		})
	}
	var unused []rbacv1.PolicyRule
	for _, r := range rules {
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				var verbs []string
				for _, verb := range r.Verbs {
					if (verb == "*" || slices.Contains(requestVerbs, verb)) && !used(r, group, resource, verb) {
						verbs = append(verbs, verb)
					}
				}
				if len(verbs) > 0 {
					unused = append(unused, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, ResourceNames: r.ResourceNames, Verbs: verbs})
				}
			}
		}
	}
	slices.SortStableFunc(unused, func(a, b rbacv1.PolicyRule) int {
		return cmp.Or(cmp.Compare(a.APIGroups[0], b.APIGroups[0]), cmp.Compare(a.Resources[0], b.Resources[0]))
	})
	return unused
}

// coversResource reports whether the resource of a rule, which may be "*" or
// "*/<subresource>", is that of the request.
func coversResource(resource string, q request) bool {
	if resource == "*" {
		return true
	}
	if all, subresource, found := strings.Cut(resource, "/"); found && all == "*" {
		return subresource == q.subresource
	}
	return resource == q.resourceOfRule()
}

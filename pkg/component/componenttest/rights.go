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
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/rbacrules"
)

// TestRights goes through the lifecycle of TestLifecycle with an operator that acts as a user
// with the rules and is elected as the leader, and expects that the server refuses nothing: the
// first answer 403 ends the test. The operator sees components in all namespaces, unless the field
// Namespaced is set.
//
// If the field As is nil, the test grants the rules, for the whole cluster, to a user of its
// own. Otherwise As is the user of the operator, who has the rights already; that tests
// Roles in namespaces, and bindings, too.
//
// A right that is of no use is a failure: a verb that Corbel never needs for the resource or, with
// the field Chart, a kind that is in no branch of the templates. Rights that no request used
// for another reason are returned and logged: other values, or an operator that had something to
// repair, may use them. Left out are verbs that do not show in a request, such as bind and escalate.
func (o Operator[T]) TestRights(t testing.TB, obj T, edit func(T), rules []rbacv1.PolicyRule) (unused []rbacv1.PolicyRule) {
	t.Helper()
	if len(rules) == 0 {
		t.Fatal("there are no rules to test: pass those of the operator's roles")
	}
	own, _ := o.account()
	within := ""
	if o.Namespaced {
		if within = own; within == "" {
			t.Fatal("the field Namespaced needs a service account in the field As: its namespace is that of the operator")
		}
	}
	i := o.prepareWithin(t, obj, within)
	if o.As == nil {
		defer i.grant(t, rules)()
	}
	i.seesAll, i.ofLease = !o.Namespaced, cmp.Or(own, i.Namespace)
	i.interrupt = func() error { return refused(i.record.all(0)) }
	i.play(t, edit, &connection{}, nil)
	if err := refused(i.record.all(0)); err != nil {
		t.Error(err)
	}
	unused = unusedRules(rules, i.record.all(0))
	useless, err := i.useless(unused)
	if err != nil {
		t.Fatal(err)
	}
	if len(useless) > 0 {
		t.Errorf("rules of no use, neither to Corbel nor in any branch of the manifests: remove them:\n%s", listed(useless))
	}
	if len(unused) > 0 {
		t.Logf("rules that no request used:\n%s", listed(unused))
	}
	return unused
}

// listed returns rules as lines of YAML.
func listed(rules []rbacv1.PolicyRule) string {
	lines := make([]string, 0, len(rules))
	for _, r := range rules {
		lines = append(lines, fmt.Sprintf("- {apiGroups: [%q], resources: [%s], verbs: [%s]}", r.APIGroups[0], r.Resources[0], strings.Join(r.Verbs, ", ")))
	}
	return strings.Join(lines, "\n")
}

// useless returns the unused rules that nothing can use. The kinds are the kinds of the chart, and
// of the objects that the operator created. Without a chart only the verbs are looked at: the kinds
// depend on the generator.
func (i *Installed[T]) useless(unused []rbacv1.PolicyRule) (useless []rbacv1.PolicyRule, err error) {
	var kinds []rbacrules.Kind
	complete := i.operator.Chart != nil
	if complete {
		var unknown []string
		if kinds, unknown, err = rbacrules.ScanChart(i.operator.Chart, "."); err != nil {
			return nil, err
		}
		complete = len(unknown) == 0
	}
	if !complete {
		for _, r := range unused {
			kinds = append(kinds, rbacrules.Kind{Group: r.APIGroups[0], Resource: r.Resources[0], Namespaced: true})
		}
	}
	created := map[schema.GroupKind]bool{} // in a namespace or not; the sample may hold kinds that are in no template
	for o, c := range i.record.creations() {
		if !c.bookkeeping && !isOfOperator(o) {
			created[o.GroupKind()] = o.namespace != ""
		}
	}
	for _, r := range unused {
		resource := schema.GroupVersionResource{Group: r.APIGroups[0], Resource: r.Resources[0]}
		kind, err := i.Client.RESTMapper().KindFor(resource)
		if apimeta.IsNoMatchError(err) {
			continue // it is not served, so nothing of it was created
		} else if err != nil {
			return nil, fmt.Errorf("find the kind of %s: %w", resource.GroupResource(), err)
		}
		if namespaced, ok := created[kind.GroupKind()]; ok {
			kinds = append(kinds, rbacrules.Kind{Group: resource.Group, Resource: resource.Resource, Namespaced: namespaced})
		}
	}
	uses := rbacrules.Operator{Group: i.kind.Group, Resource: i.resource.Resource}.Uses(kinds)
	for _, r := range unused {
		var verbs []string
		for _, verb := range r.Verbs {
			if !slices.ContainsFunc(uses, func(use rbacv1.PolicyRule) bool {
				return slices.Contains(use.APIGroups, r.APIGroups[0]) && slices.Contains(use.Resources, r.Resources[0]) && slices.Contains(use.Verbs, verb)
			}) {
				verbs = append(verbs, verb)
			}
		}
		if len(verbs) > 0 {
			r.Verbs = verbs
			useless = append(useless, r)
		}
	}
	return useless, nil
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

// refused returns an error that lists the requests with the answer 403, but for requests that the operator does not need.
func refused(requests []request) error {
	var errs []error
	seen := map[string]bool{}
	for _, q := range requests {
		if q.code != http.StatusForbidden || q.isOptional() || seen[q.String()] {
			continue
		}
		seen[q.String()] = true
		if q.resource.Resource == "" {
			errs = append(errs, fmt.Errorf("%s is forbidden", q))
			continue
		}
		errs = append(errs, fmt.Errorf("%s is forbidden: the operator needs %s on %s of the API group %q",
			q, strings.Join(q.verbs(), " and "), q.resourceOfRule(), q.resource.Group))
	}
	return errors.Join(errs...)
}

// resourceOfRule is the resource, and the subresource, as a rule has it.
func (q request) resourceOfRule() string {
	if q.subresource == "" {
		return q.resource.Resource
	}
	return q.resource.Resource + "/" + q.subresource
}

// requestVerbs are the verbs that a request can show.
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

// coversResource reports whether the resource of a rule, which may be "*" or "*/<subresource>",
// matches the request.
func coversResource(resource string, q request) bool {
	if resource == "*" {
		return true
	}
	if all, subresource, found := strings.Cut(resource, "/"); found && all == "*" {
		return subresource == q.subresource
	}
	return resource == q.resourceOfRule()
}

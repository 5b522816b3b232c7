// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// verbs are what the operator does with a dependent, and with all of its type that it watches.
var verbs = []string{"get", "list", "watch", "create", "update", "patch", "delete"}

// Rules are rights in one namespace; in all, if it is empty.
type Rules struct {
	Namespace string
	Rules     []rbacv1.PolicyRule
}

// Rules returns the rights that the operator of a component needs for the objects in its inventory: a Role for each
// namespace, and a ClusterRole for objects without one.
func (r *Reader) Rules(inventory v1alpha1.Inventory) ([]Rules, error) {
	resources := map[string]map[string][]string{} // namespace, group, resources
	var unknown []string
	for _, item := range inventory.Items {
		mapping, err := r.Mapper.RESTMapping(KindOf(item).GroupKind(), item.Version)
		if err != nil {
			unknown = append(unknown, KindOf(item).GroupKind().String())
			continue
		}
		groups := resources[item.Namespace]
		if groups == nil {
			groups = map[string][]string{}
			resources[item.Namespace] = groups
		}
		if !slices.Contains(groups[item.Group], mapping.Resource.Resource) {
			groups[item.Group] = append(groups[item.Group], mapping.Resource.Resource)
		}
	}
	var all []Rules
	for namespace, groups := range resources {
		rules := Rules{Namespace: namespace}
		for group, plurals := range groups {
			slices.Sort(plurals)
			rules.Rules = append(rules.Rules, rbacv1.PolicyRule{APIGroups: []string{group}, Resources: plurals, Verbs: verbs})
		}
		slices.SortFunc(rules.Rules, func(a, b rbacv1.PolicyRule) int { return strings.Compare(a.APIGroups[0], b.APIGroups[0]) })
		all = append(all, rules)
	}
	slices.SortFunc(all, func(a, b Rules) int { return cmp.Compare(a.Namespace, b.Namespace) })
	if len(unknown) > 0 {
		slices.Sort(unknown)
		return all, fmt.Errorf("the server does not serve %s any more, so no rules are printed for them", strings.Join(slices.Compact(unknown), ", "))
	}
	return all, nil
}

// ServiceAccountOf returns the service account of the operator of a component, "namespace/name": that of the only
// Deployment in the namespace of the operator.
func (r *Reader) ServiceAccountOf(ctx context.Context, c Component) (string, error) {
	operator := c.Status.Inventory.Operator
	if operator == nil {
		return "", fmt.Errorf("%s does not say which operator reconciles it", c)
	}
	list := &appsv1.DeploymentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(operator.Namespace)); err != nil {
		return "", fmt.Errorf("list the Deployments in namespace %s: %w", operator.Namespace, err)
	}
	if len(list.Items) != 1 {
		return "", fmt.Errorf("namespace %s of the operator has %d Deployments", operator.Namespace, len(list.Items))
	}
	return operator.Namespace + "/" + cmp.Or(list.Items[0].Spec.Template.Spec.ServiceAccountName, "default"), nil
}

// Lacking returns which rights of the rules a service account, "namespace/name", lacks. Each right is one review. A right
// that is needed in several namespaces is asked for in all of them first, at most once.
func Lacking(ctx context.Context, reviewer RulesReviewer, serviceAccount string, rules []Rules) ([]string, error) {
	namespace, name, _ := strings.Cut(serviceAccount, "/")
	groups := []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"}
	allowed := map[authorizationv1.ResourceAttributes]bool{}
	ask := func(right authorizationv1.ResourceAttributes) error {
		if _, asked := allowed[right]; asked {
			return nil
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User: "system:serviceaccount:" + namespace + ":" + name, Groups: groups, ResourceAttributes: &right,
		}}
		if err := reviewer.Create(ctx, review); err != nil {
			return fmt.Errorf("ask which rights the service account %s has: %w", serviceAccount, err)
		}
		allowed[right] = review.Status.Allowed
		return nil
	}
	needed := map[schema.GroupResource]int{} // in how many namespaces
	for _, in := range rules {
		for _, rule := range in.Rules {
			for _, resource := range rule.Resources {
				needed[schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}]++
			}
		}
	}
	var lacking []string
	for _, in := range rules {
		for _, rule := range in.Rules {
			for _, resource := range rule.Resources {
				of := schema.GroupResource{Group: rule.APIGroups[0], Resource: resource}
				var missing []string
				for _, verb := range rule.Verbs {
					everywhere := authorizationv1.ResourceAttributes{Verb: verb, Group: of.Group, Resource: resource}
					here := everywhere
					here.Namespace = in.Namespace
					if needed[of] > 1 {
						if err := ask(everywhere); err != nil {
							return nil, err
						}
					}
					if allowed[everywhere] {
						continue
					}
					if err := ask(here); err != nil {
						return nil, err
					}
					if !allowed[here] {
						missing = append(missing, verb)
					}
				}
				if len(missing) > 0 {
					text := strings.Join(missing, ", ") + " " + of.String()
					if in.Namespace != metav1.NamespaceAll {
						text += " in namespace " + in.Namespace
					}
					lacking = append(lacking, text)
				}
			}
		}
	}
	return lacking, nil
}

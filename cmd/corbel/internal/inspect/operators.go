// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/lease"
	"github.com/corbel-run/corbel/pkg/component"
)

// Finding is what a check found.
type Finding struct {
	// About names the object, and Text says how it is and what to do.
	About, Text string
	// Problem: something does not work. Else it is a note.
	Problem bool
}

// checker collects findings.
type checker struct {
	reader   *Reader
	now      time.Time
	findings []Finding
	// operators are those that were checked: several types may have the same.
	operators map[operatorKey]bool
	// shared are the reconcilers with shared types that were checked.
	shared map[string]bool
	// leased are the reconcilers of components, and whether a component names a Lease of it.
	leased map[string]bool
}

func (c *checker) problem(about, format string, arguments ...any) {
	c.findings = append(c.findings, Finding{about, fmt.Sprintf(format, arguments...), true})
}

func (c *checker) note(about, format string, arguments ...any) {
	c.findings = append(c.findings, Finding{about, fmt.Sprintf(format, arguments...), false})
}

// Check looks at types of components and at the operators that reconcile their components: whether the definitions are
// those that the operator needs, and whether the operators are alive. The namespace bounds which components are read;
// empty means all.
func (r *Reader) Check(ctx context.Context, types []Type, namespace string, now time.Time) ([]Finding, error) {
	c := &checker{reader: r, now: now, operators: map[operatorKey]bool{}, shared: map[string]bool{}, leased: map[string]bool{}}
	for _, t := range types {
		if err := c.definition(ctx, t); err != nil {
			return c.findings, err
		}
		if err := c.components(ctx, t, namespace); err != nil {
			return c.findings, err
		}
	}
	maps.DeleteFunc(c.leased, func(_ string, leased bool) bool { return leased })
	if names := slices.Sorted(maps.Keys(c.leased)); len(names) > 0 {
		c.note(strings.Join(names, ", "), "no component names its Lease, as with an operator outside of the cluster: whether it runs is not checked")
	}
	return c.findings, nil
}

// get reads an object that may not be readable: then it is a note, and the answer is false. That it does not exist is a problem.
func (c *checker) get(ctx context.Context, about string, key client.ObjectKey, kind string, apiVersion string, into runtime.Object, absent string) (bool, error) {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(apiVersion)
	object.SetKind(kind)
	err := c.reader.Client.Get(ctx, key, object)
	switch {
	case apierrors.IsNotFound(err):
		c.problem(about, "%s", absent)
		return false, nil
	case apierrors.IsForbidden(err), apimeta.IsNoMatchError(err):
		c.note(about, "you may not read it")
		return false, nil
	case err != nil:
		return false, fmt.Errorf("read %s: %w", about, err)
	}
	return true, runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, into)
}

// definition checks the definition of a type.
func (c *checker) definition(ctx context.Context, t Type) error {
	about := "CustomResourceDefinition " + t.String()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if found, err := c.get(ctx, about, client.ObjectKey{Name: t.String()}, "CustomResourceDefinition", "apiextensions.k8s.io/v1", crd, "it does not exist"); err != nil || !found {
		return err
	}
	if crd.DeletionTimestamp != nil {
		c.problem(about, "it is being deleted since %s, and all components of the type with it", crd.DeletionTimestamp.UTC().Format(time.RFC3339))
	}
	var served []string
	for _, version := range crd.Spec.Versions {
		if version.Served {
			served = append(served, version.Name)
		}
		if version.Name != t.Version {
			continue
		}
		if version.Subresources == nil || version.Subresources.Status == nil {
			c.problem(about, "version %s has no status subresource: no operator that is built with Corbel can use it", version.Name)
		}
		if missing := missingFields(version.Schema); len(missing) > 0 {
			c.problem(about, "it lacks %s: apply the one of this version of the operator", strings.Join(missing, ", "))
		}
	}
	for _, stored := range crd.Status.StoredVersions {
		if !slices.Contains(served, stored) {
			c.problem(about, "objects are stored in version %s, which is not served any more", stored)
		}
	}
	if !t.Component {
		c.note(about, "it lacks the category %q, so \"corbel get\" finds its components only by the name of the kind", Category)
	}
	return nil
}

// missingFields returns the fields of the status that a schema lacks.
func missingFields(schema *apiextensionsv1.CustomResourceValidation) []string {
	if schema == nil || schema.OpenAPIV3Schema == nil {
		return nil
	}
	status := schema.OpenAPIV3Schema.Properties["status"]
	if status.XPreserveUnknownFields != nil && *status.XPreserveUnknownFields {
		return nil
	}
	var missing []string
	for field := range reflect.TypeFor[component.Status]().Fields() {
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if _, ok := status.Properties[name]; !ok {
			missing = append(missing, "status."+name)
		}
	}
	return missing
}

// operatorKey identifies an operator by what inventories say.
type operatorKey struct{ namespace, lease string }

// components checks the operators of the components of a type.
func (c *checker) components(ctx context.Context, t Type, namespace string) error {
	operators := map[operatorKey]int{}
	count, unseen := 0, 0
	if !t.Namespaced {
		namespace = ""
	}
	_, err := c.reader.List(ctx, t, Selection{Namespace: namespace}, func(found Component) error {
		count++
		c.sharedTypes(ctx, found)
		by := found.Status.Inventory.Operator
		if by != nil {
			operators[operatorKey{by.Namespace, by.Lease}]++
		}
		if found.Reconciler != "" {
			c.leased[found.Reconciler] = c.leased[found.Reconciler] || by != nil && by.Lease != ""
		}
		if found.Status.State == "" {
			unseen++
		}
		if found.Mistake != nil {
			c.problem(found.String(), "%v", found.Mistake)
		}
		return nil
	})
	if apierrors.IsForbidden(err) {
		c.note(t.String(), "you may not list them: %v", err)
		return nil
	}
	if err != nil {
		return err
	}
	if unseen > 0 {
		c.problem(t.String(), "%d of %d were never reconciled: no operator for them runs, or it does not select them", unseen, count)
	}
	alive := map[string]bool{}
	for operator := range operators {
		if _, checked := c.operators[operator]; !checked {
			lives, err := c.operator(ctx, t, operator)
			if err != nil {
				return err
			}
			c.operators[operator] = lives
		}
		if c.operators[operator] {
			alive[operator.namespace] = true
		}
	}
	if len(alive) > 1 {
		c.problem(t.String(), "%d operators in different namespaces are alive; remove one of them, or let them select different components", len(alive))
	}
	return nil
}

// sharedTypes checks the definitions that all components of a reconciler share.
func (c *checker) sharedTypes(ctx context.Context, of Component) {
	if c.shared[of.Reconciler] {
		return
	}
	c.shared[of.Reconciler] = true
	for _, shared := range c.reader.SharedTypes(ctx, of) {
		if !shared.IsReady() {
			c.problem(shared.String(), "all components of %s share it, and it is %s: %s", of.Reconciler, shared.State, shared.Message)
		}
	}
}

// operator checks the lease and the Deployments of an operator.
func (c *checker) operator(ctx context.Context, t Type, operator operatorKey) (alive bool, err error) {
	about := fmt.Sprintf("the operator of %s in namespace %s", t, operator.namespace)
	if operator.lease != "" {
		if alive, err = c.lease(ctx, about, operator.lease); err == nil {
			err = c.twins(ctx, about, operator.lease)
		}
		if err != nil {
			return false, err
		}
	}
	list := &appsv1.DeploymentList{}
	err = c.reader.Client.List(ctx, list, client.InNamespace(operator.namespace))
	if apierrors.IsForbidden(err) {
		c.note(about, "you may not list the Deployments in its namespace")
		return alive, nil
	}
	if err != nil {
		return alive, fmt.Errorf("list the Deployments in namespace %s: %w", operator.namespace, err)
	}
	for _, deployment := range list.Items {
		desired := int32(1)
		if deployment.Spec.Replicas != nil {
			desired = *deployment.Spec.Replicas
		}
		if deployment.Status.AvailableReplicas < desired {
			c.problem(about, "Deployment %s/%s has %d of %d replicas", deployment.Namespace, deployment.Name, deployment.Status.AvailableReplicas, desired)
		}
	}
	return alive, nil
}

// lease reports whether a lease, named "namespace/name", is held.
func (c *checker) lease(ctx context.Context, about, named string) (bool, error) {
	namespace, name, _ := strings.Cut(named, "/")
	live := &coordinationv1.Lease{}
	found, err := c.get(ctx, "Lease "+named, client.ObjectKey{Namespace: namespace, Name: name}, "Lease", "coordination.k8s.io/v1", live, "it does not exist")
	if err != nil || !found {
		return false, err
	}
	holding := lease.Of(live, c.now)
	switch {
	case holding.Held:
	case holding.Holder == "", holding.Renewed.IsZero():
		c.problem(about, "no process holds Lease %s: the operator does not run", named)
	default:
		c.problem(about, "Lease %s was not renewed for %s: the operator does not run, or cannot reach the API server", named, c.now.Sub(holding.Renewed).Round(time.Second))
	}
	return holding.Held, nil
}

// twins finds the leases that have the name of this one, "namespace/name", in other namespaces, and are held.
func (c *checker) twins(ctx context.Context, about, named string) error {
	_, name, _ := strings.Cut(named, "/")
	return c.heldLeases(ctx, about, name, "a second operator of its name is not looked for", func(other string) {
		if other != named {
			c.problem(about, "Lease %s is held as well as %s, so there is a second operator of this name; remove one of them, or let them select different components", other, named)
		}
	})
}

// heldLeases calls a function with each Lease of a name that is held. If they may not be listed, that is a note.
func (c *checker) heldLeases(ctx context.Context, about, name, otherwise string, held func(lease string)) error {
	list := &coordinationv1.LeaseList{}
	err := c.reader.Client.List(ctx, list, client.MatchingFields{"metadata.name": name})
	if apierrors.IsForbidden(err) {
		c.note(about, "you may not list Leases, so %s", otherwise)
		return nil
	}
	if err != nil {
		return fmt.Errorf("list the Leases named %s: %w", name, err)
	}
	for i := range list.Items {
		if lease.Of(&list.Items[i], c.now).Held {
			held(client.ObjectKeyFromObject(&list.Items[i]).String())
		}
	}
	return nil
}

// RulesReviewer asks which rights the user has. A client.Client is one.
type RulesReviewer interface {
	// Create sends a review.
	Create(ctx context.Context, object client.Object, options ...client.CreateOption) error
}

// read is a right to read, and what needs it.
type read struct {
	group, resource, verb, namespace, needs string
}

// CheckRights finds which rights to read components and their surroundings in a namespace the user lacks.
func CheckRights(ctx context.Context, reviewer RulesReviewer, types []Type, namespace string) ([]Finding, error) {
	review := &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace}}
	if err := reviewer.Create(ctx, review); err != nil {
		return nil, fmt.Errorf("ask which rights you have in namespace %s: %w", namespace, err)
	}
	if review.Status.Incomplete {
		return []Finding{{About: "your rights in namespace " + namespace, Text: "the server does not know all of them: " + review.Status.EvaluationError}}, nil
	}
	needed := []read{
		{"", "secrets", "get", namespace, "an inventory in Secrets"}, {"", "pods", "list", namespace, "tree --pods, events and why"},
		{"", "events", "list", namespace, "events and why"}, {"apps", "replicasets", "list", namespace, "tree --pods"},
	}
	for _, t := range types {
		needed = append(needed, read{t.Group, t.Resource, "list", namespace, "get"}, read{t.Group, t.Resource, "patch", namespace, "reconcile, suspend, resume, approve and rollback"})
	}
	var findings []Finding
	for _, need := range needed {
		if !allows(review.Status.ResourceRules, need) {
			findings = append(findings, Finding{
				About: "your rights in namespace " + namespace,
				Text:  fmt.Sprintf("you may not %s %s, which is needed by: %s", need.verb, strings.TrimSuffix(need.resource+"."+need.group, "."), need.needs),
			})
		}
	}
	return findings, nil
}

func allows(rules []authorizationv1.ResourceRule, need read) bool {
	has := func(list []string, value string) bool {
		return slices.Contains(list, value) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(rules, func(rule authorizationv1.ResourceRule) bool {
		return has(rule.Verbs, need.verb) && has(rule.APIGroups, need.group) && has(rule.Resources, need.resource) && len(rule.ResourceNames) == 0
	})
}

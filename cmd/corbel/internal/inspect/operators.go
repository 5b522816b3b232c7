// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/lease"
	"github.com/corbel-run/corbel/internal/revisions"
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
	// shared are the reconcilers with shared types that were checked; after a restore, the digest keys.
	shared map[string]bool
	// leased are the reconcilers of components, and whether a component names a Lease of it; after a restore, the names of Leases.
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

// CheckRestore looks for objects that are missing after a restore from a backup, and that the operators of the types need when they
// start. The namespace bounds which components are read; empty means all.
func (r *Reader) CheckRestore(ctx context.Context, types []Type, namespace string, now time.Time) ([]Finding, error) {
	c := &checker{reader: r, now: now, shared: map[string]bool{}, leased: map[string]bool{}}
	for _, t := range types {
		if err := errors.Join(c.definition(ctx, t), c.restored(ctx, t, namespace)); err != nil {
			return c.findings, err
		}
	}
	if !slices.ContainsFunc(c.findings, func(f Finding) bool { return f.Problem }) {
		return c.findings, nil
	}
	for _, name := range slices.Sorted(maps.Keys(c.leased)) {
		err := c.leases(ctx, "Lease "+name, name, "whether the operator runs already is not checked", func(held string) {
			c.problem("Lease "+held, "it is held, so the operator runs while objects are missing: scale it to 0, restore them, and start it again")
		})
		if err != nil {
			return c.findings, err
		}
	}
	return c.findings, nil
}

// restored checks the components of a type after a restore.
func (c *checker) restored(ctx context.Context, t Type, namespace string) error {
	if !t.Namespaced {
		namespace = ""
	}
	local := &metav1.PartialObjectMetadata{}
	local.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := c.reader.Client.Get(ctx, client.ObjectKey{Name: metav1.NamespaceSystem}, local); err != nil && !isAnswer(err) {
		return err
	}
	count, withoutStatus, withoutHistory := 0, map[string]int{}, 0
	_, err := c.reader.List(ctx, t, Selection{Namespace: namespace}, func(listed Component) error {
		count++
		found, err := c.reader.Get(ctx, t, client.ObjectKeyFromObject(listed.Object)) // with its inventory
		object, by := found.Object, found.Status.Inventory.Operator
		switch {
		case err != nil:
			return err
		case by == nil:
			withoutStatus[object.GetNamespace()]++
			c.leased[t.Group] = true // the name that projects of corbel init have
			return nil
		case by.Lease != "":
			c.leased[by.Lease[strings.Index(by.Lease, "/")+1:]] = true
		}
		_, remote, _ := unstructured.NestedFieldNoCopy(object.Object, "spec", "kubeConfig")
		if target := found.Status.Inventory.Target; !remote && target != "" && local.UID != "" && target != local.UID {
			c.problem(found.String(), "its status is that of another cluster, with which its operator changes nothing, for the reason TargetChanged: restore it without its status")
		}
		store := revisions.NewStore(revisions.Options{Name: found.Reconciler, Namespace: by.Namespace})
		record := store.Secret(revisions.Component{GroupVersionKind: t.GroupVersionKind, Namespace: object.GetNamespace(), Name: object.GetName(), UID: object.GetUID()})
		if len(found.Status.History) > 0 && apierrors.IsNotFound(c.reader.Client.Get(ctx, record, &corev1.Secret{})) {
			withoutHistory++
		}
		return errors.Join(c.digestKey(ctx, found.Reconciler, *by), c.recorded(ctx, found))
	})
	if withoutHistory > 0 {
		c.note(t.String(), "%d of %d lack the Secret of their revisions, as each component with a new uid does: there is no rollback to a revision "+
			"from before the restore, and the operator takes random values from the live objects", withoutHistory, count)
	}
	for namespace, count := range withoutStatus {
		about := strings.TrimSpace(t.String() + " " + namespace)
		secrets, err := c.reader.metadata(ctx, corev1.SchemeGroupVersion.WithKind("Secret"), namespace)
		switch {
		case err != nil && !apierrors.IsForbidden(err):
			return err
		case err == nil && len(secrets) == 0:
			c.problem(about, "%d have no status, and their namespace has no Secret: restore the Secrets before the operator starts, or it creates them with new random values", count)
		default:
			c.note(about, "%d have no status, so their objects are not known here: the operator takes random values from the live objects, and from no Secret that is restored after it starts", count)
		}
	}
	return err
}

// digestKey checks that the digest key of an operator is the one of an inventory.
func (c *checker) digestKey(ctx context.Context, reconciler string, by v1alpha1.InventoryOperator) error {
	about := fmt.Sprintf("Secret %s/%s-digest-key", by.Namespace, reconciler)
	if c.shared[about+by.Key] {
		return nil
	}
	c.shared[about+by.Key] = true
	const remedy = "restore the digest key of the backup before the operator starts: with another key there is no rollback to an earlier revision, and each object is written once more"
	secret := &corev1.Secret{}
	found, err := c.get(ctx, about, client.ObjectKey{Namespace: by.Namespace, Name: reconciler + "-digest-key"}, "Secret", "v1", secret, "it does not exist; "+remedy)
	if found && (digest.Hasher{Key: secret.Data["key"]}).ID() != by.Key {
		c.problem(about, "it is not the key that components are recorded with; %s", remedy)
	}
	return err
}

// recorded checks that the recorded objects of a component exist. Of those that do not, three are named, Secrets first.
func (c *checker) recorded(ctx context.Context, of Component) error {
	dependents, err := c.reader.Dependents(ctx, of)
	if IsLost(err) {
		c.note(of.String(), "%v", err)
	} else if err != nil {
		return err
	}
	missing := slices.DeleteFunc(dependents, func(d Dependent) bool { return d.State != StateMissing })
	slices.SortStableFunc(missing, func(a, b Dependent) int {
		return strings.Compare(strings.TrimPrefix(a.Item.Kind, "Secret"), strings.TrimPrefix(b.Item.Kind, "Secret"))
	})
	var names []string
	for _, d := range missing[:min(len(missing), 3)] {
		names = append(names, d.String())
	}
	if len(missing) > 0 {
		c.problem(of.String(), "%d recorded objects do not exist, among them %s: restore them before the operator starts, which creates a Secret with new random values", len(missing), strings.Join(names, ", "))
	}
	return nil
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
	return c.leases(ctx, about, name, "a second operator of its name is not looked for", func(other string) {
		if other != named {
			c.problem(about, "Lease %s is held as well as %s, so there is a second operator of this name; remove one of them, or let them select different components", other, named)
		}
	})
}

// leases calls a function with each Lease of a name that is held. If they may not be listed, that is a note.
func (c *checker) leases(ctx context.Context, about, name, otherwise string, held func(lease string)) error {
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

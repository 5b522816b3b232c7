// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/bench/operator"
)

const (
	// unownedObjects is how many objects of others there are, which nothing may touch.
	unownedObjects = 20
	// deletedNamespaces is how many namespaces of components are deleted under load.
	deletedNamespaces = 3
)

// The patches that take our label and annotation off an object.
var (
	withoutLabel      = fmt.Sprintf(`"labels":{%q:null}`, operator.Name+"/"+vocabulary.LabelOwnerID)
	withoutAnnotation = fmt.Sprintf(`"annotations":{%q:null}`, operator.Name+"/"+vocabulary.AnnotationOwner)
)

// createUnownedObjects creates objects that look a little like those of components. Half of
// them have a copy of the label of a component, as objects do that a controller makes.
func (s *soak) createUnownedObjects(ctx context.Context) error {
	s.others = map[types.NamespacedName]string{}
	for i := range unownedObjects {
		object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: s.namespace, Name: fmt.Sprintf("unowned-%d", i)}, Data: map[string]string{"all": s.word()}}
		if i%2 == 1 {
			dependent := &corev1.ConfigMap{}
			if err := s.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name(i) + "-0"}, dependent); client.IgnoreNotFound(err) != nil {
				return err
			}
			object.Labels = dependent.Labels
		}
		if err := s.Create(ctx, object); err != nil {
			return err
		}
		s.others[client.ObjectKeyFromObject(object)] = fingerprint(object)
	}
	return nil
}

// fingerprint changes when anything about an object does.
func fingerprint(object client.Object) string {
	return string(object.GetUID()) + " " + object.GetResourceVersion()
}

// strip removes the label or the annotation from a dependent or from the namespace of
// dependents, or both if the inventory names the object by its uid: without that nothing in
// the cluster would show that it is ours.
func (s *soak) strip(ctx context.Context, load *operator.Load, object client.Object) error {
	switch s.random.IntN(3) {
	case 0:
		return s.merge(ctx, object, fmt.Sprintf(`{"metadata":{%s}}`, withoutLabel))
	case 1:
		return s.merge(ctx, object, fmt.Sprintf(`{"metadata":{%s}}`, withoutAnnotation))
	}
	if err := s.Get(ctx, client.ObjectKeyFromObject(load), load); err != nil {
		return err
	}
	if err := s.Get(ctx, client.ObjectKeyFromObject(object), object); err != nil {
		return err
	}
	recorded := slices.ContainsFunc(load.Status.Inventory.Items, func(item v1alpha1.InventoryItem) bool { return item.UID == object.GetUID() })
	if !recorded {
		return nil
	}
	return s.merge(ctx, object, fmt.Sprintf(`{"metadata":{"uid":%q,%s,%s}}`, object.GetUID(), withoutLabel, withoutAnnotation))
}

// deletedNamespace is the namespace of that number in which components are.
func (s *soak) deletedNamespace(i int) string { return fmt.Sprintf("%s-deleted-%d", s.namespace, i) }

// createDeletedNamespaces creates those of the namespaces deleted under load that do not exist.
func (s *soak) createDeletedNamespaces(ctx context.Context) error {
	for i := range deletedNamespaces {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.deletedNamespace(i)}}
		if err := s.Create(ctx, namespace); err != nil && !apierrors.IsAlreadyExists(err) {
			return err
		}
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"context"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
)

// Origin says which component an object belongs to.
type Origin struct {
	// Chain are the objects from the one that was asked for up to the dependent: a Pod, its ReplicaSet, its Deployment.
	Chain []*metav1.PartialObjectMetadata
	// Owner is the component; nil if the chain ends with an object that has no owner, or if it does not exist any more.
	Owner *Component
	// Reconciler is the prefix of the labels and annotations of the last object; it is empty if it has none.
	Reconciler string
	// Named is the component as the annotation of the dependent names it, such as "Shop market/corner"; it is empty for a shared definition.
	Named string
}

// maxChain bounds how many owner references are followed.
const maxChain = 8

// Owner follows the owner references of an object to a dependent of a component, and to the component.
func (r *Reader) Owner(ctx context.Context, t Type, key client.ObjectKey) (Origin, error) {
	var origin Origin
	kind := t.GroupVersionKind
	if !t.Namespaced {
		key.Namespace = ""
	}
	for range maxChain {
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(kind)
		if err := r.Client.Get(ctx, key, object); err != nil {
			return origin, fmt.Errorf("read %s %s: %w", kind.Kind, strings.TrimPrefix(key.String(), "/"), err)
		}
		object.SetGroupVersionKind(kind)
		origin.Chain = append(origin.Chain, object)
		for label := range object.GetLabels() {
			if name, isShared := strings.CutSuffix(label, "/"+vocabulary.LabelShared); isShared && kind.Kind == "CustomResourceDefinition" {
				origin.Reconciler = name
				return origin, nil
			}
		}
		if reconciler, ref, ok := ownerOf(object); ok {
			origin.Reconciler, origin.Named = reconciler, ref.String()
			owner, err := r.componentNamed(ctx, ref)
			origin.Owner = owner
			return origin, err
		}
		above := metav1.GetControllerOf(object)
		if above == nil && len(object.OwnerReferences) > 0 {
			above = &object.OwnerReferences[0]
		}
		if above == nil {
			return origin, nil
		}
		gv, err := schema.ParseGroupVersion(above.APIVersion)
		if err != nil {
			return origin, fmt.Errorf("%s %s has an owner reference with the version %q", kind.Kind, key.Name, above.APIVersion)
		}
		kind, key.Name = gv.WithKind(above.Kind), above.Name
	}
	return origin, nil
}

// ownerRef is the owner of a dependent, as its annotation names it.
type ownerRef struct{ group, kind, namespace, name, uid string }

// String names the owner: "Shop market/corner".
func (o ownerRef) String() string {
	return o.kind + " " + strings.TrimPrefix(o.namespace+"/"+o.name, "/")
}

// ownerOf returns the owner that the label and the annotation of an object name. A copy of the label alone, which
// controllers make, is none.
func ownerOf(object client.Object) (reconciler string, ref ownerRef, ok bool) {
	for key := range object.GetLabels() {
		name, isOwnerID := strings.CutSuffix(key, "/"+vocabulary.LabelOwnerID)
		parts := strings.Split(object.GetAnnotations()[name+"/"+vocabulary.AnnotationOwner], "/")
		if isOwnerID && len(parts) == 5 && parts[1] != "" && parts[3] != "" {
			return name, ownerRef{parts[0], parts[1], parts[2], parts[3], parts[4]}, true
		}
	}
	return "", ownerRef{}, false
}

// componentNamed reads a component; nil if it, or its type, does not exist any more.
func (r *Reader) componentNamed(ctx context.Context, ref ownerRef) (*Component, error) {
	all, err := r.Resources()
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(all, func(t Type) bool { return t.Group == ref.group && t.Kind == ref.kind })
	if i < 0 {
		return nil, nil
	}
	c, err := r.Get(ctx, all[i], client.ObjectKey{Namespace: ref.namespace, Name: ref.name})
	if apierrors.IsNotFound(err) || err == nil && string(c.Object.GetUID()) != ref.uid {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &c, nil
}

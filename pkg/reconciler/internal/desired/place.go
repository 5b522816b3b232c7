// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// scope is what is known about where the objects of a type live.
type scope int

const (
	scopeFailed       scope = iota // asking failed
	scopeMissing                   // nobody knows the type
	scopeLater                     // the type appears at run time
	scopeUnmanageable              // its objects cannot be dependents
	scopeNamespace
	scopeCluster
)

// place decides about the namespace of every item. The error says which types
// could not be resolved at the moment.
func place(ctx context.Context, in Input, items []*item) error {
	scopes := map[schema.GroupVersionKind]scope{}
	own := typesOf(items)
	var errs []error
	for _, item := range items {
		if item.broken || item.aside {
			continue
		}
		gvk := item.gvk()
		found, known := scopes[gvk]
		if !known {
			var err error
			if found, err = resolve(ctx, in, own, gvk); err != nil {
				errs = append(errs, err)
			}
			scopes[gvk] = found
		}
		item.settle(found, in.Namespace)
	}
	return errors.Join(errs...)
}

// resolve asks the cluster first and the objects themselves then.
func resolve(ctx context.Context, in Input, own ownTypes, gvk schema.GroupVersionKind) (scope, error) {
	if in.Resolve == nil {
		return scopeFailed, errors.New("no way to resolve types is given")
	}
	namespaced, served, err := in.Resolve(ctx, gvk)
	switch {
	case errors.Is(err, ErrUnmanageable):
		return scopeUnmanageable, nil
	case err != nil:
		return scopeFailed, fmt.Errorf("resolve type %s: %w", typeName(gvk), err)
	case served && namespaced:
		return scopeNamespace, nil
	case served:
		return scopeCluster, nil
	}
	if definition, defined := own.definitions[gvk.GroupKind()]; defined && definition.versions[gvk.Version] {
		return definition.scope, nil
	}
	if own.services[gvk.GroupVersion()] || managed(in.Managed, gvk) {
		return scopeLater, nil
	}
	return scopeMissing, nil
}

func managed(patterns []v1alpha1.TypeInfo, gvk schema.GroupVersionKind) bool {
	for _, pattern := range patterns {
		if pattern.Matches(gvk.Group, gvk.Kind) {
			return true
		}
	}
	return false
}

// typeName returns a type as people write it, such as "apps/v1 Deployment".
func typeName(gvk schema.GroupVersionKind) string {
	return gvk.GroupVersion().String() + " " + gvk.Kind
}

// settle sets the namespace of the item.
func (i *item) settle(found scope, namespace string) {
	metadata := i.content["metadata"].(map[string]any)
	switch found {
	case scopeFailed:
		i.broken = true
	case scopeMissing:
		i.fail("type %s is not served by the cluster, and nothing of this component brings it", typeName(i.gvk()))
	case scopeUnmanageable:
		i.fail("type %s is not for dependent objects: the cluster does not let its objects be created, read and deleted; remove the object from the manifests", typeName(i.gvk()))
	case scopeCluster:
		// Charts set namespaces on everything, and other tools put up with it.
		i.key.Namespace = ""
	case scopeNamespace:
		if i.key.Namespace == "" {
			i.key.Namespace = namespace
		}
		if i.key.Namespace == "" {
			i.fail("has no namespace, and the component has none to put it into")
		}
	}
	if i.key.Namespace == "" {
		delete(metadata, "namespace")
		return
	}
	metadata["namespace"] = i.key.Namespace
}

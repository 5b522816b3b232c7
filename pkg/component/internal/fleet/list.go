// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package fleet

import (
	"context"
	"errors"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// pageSize is how many components a request lists.
const pageSize = 500

// Lister has the components of an operator.
type Lister struct {
	// Server reads from the API server, Cache from the cache of the manager.
	Server, Cache client.Reader
	// Namespace is the only one that the operator has rights in; empty: there may be more.
	Namespace string
	// Selector selects the components of the operator; nil: all.
	Selector labels.Selector
	// New returns an empty component.
	New func() identity.Component
}

// listed is a component that was listed.
type listed struct {
	Member
	// said: it has the condition RolloutStopped.
	said bool
}

// list lists all components that the manager's cache has, as the server has them. A component that cannot be decoded is left out: it
// is not reconciled either.
func (f *Fleet) list(ctx context.Context, generator string) (map[client.ObjectKey]listed, error) {
	ours, err := f.cached(ctx)
	if err != nil {
		return nil, err
	}
	found := map[client.ObjectKey]listed{}
	err = f.add(ctx, generator, f.Lister.Namespace, ours, found)
	if !apierrors.IsForbidden(err) || f.Lister.Namespace != "" {
		return found, err
	}
	clear(found)
	namespaces := map[string]bool{}
	for key := range ours {
		namespaces[key.Namespace] = true
	}
	for _, namespace := range slices.Sorted(maps.Keys(namespaces)) {
		if err := f.add(ctx, generator, namespace, ours, found); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// cached returns the components in the manager's cache, which may be those of a few namespaces; nil if the
// cache is not started.
func (f *Fleet) cached(ctx context.Context) (map[client.ObjectKey]bool, error) {
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(f.Self.ListKind())
	err := f.Lister.Cache.List(ctx, list)
	if _, stopped := errors.AsType[*cache.ErrCacheNotStarted](err); stopped {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	keys := make(map[client.ObjectKey]bool, len(list.Items))
	for i := range list.Items {
		keys[client.ObjectKeyFromObject(&list.Items[i])] = true
	}
	return keys, nil
}

// add adds the components of a namespace, or of all namespaces if it is empty.
func (f *Fleet) add(ctx context.Context, generator, namespace string, ours map[client.ObjectKey]bool, found map[client.ObjectKey]listed) error {
	options := []client.ListOption{client.InNamespace(namespace), client.Limit(pageSize)}
	if f.Lister.Selector != nil {
		options = append(options, client.MatchingLabelsSelector{Selector: f.Lister.Selector})
	}
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(f.Self.ListKind())
		if err := f.Lister.Server.List(ctx, page, append(options, client.Continue(next))...); err != nil {
			return err
		}
		for i := range page.Items {
			item := &page.Items[i]
			key := client.ObjectKeyFromObject(item)
			if item.GetDeletionTimestamp() != nil || ours != nil && !ours[key] {
				continue
			}
			if c, ok := f.decode(generator, item); ok {
				found[key] = c
			}
		}
		if next = page.GetContinue(); next == "" {
			return nil
		}
	}
}

// decode returns the state of a component that was listed. It is false if the component cannot be decoded, or a method of it panics.
func (f *Fleet) decode(generator string, item *unstructured.Unstructured) (c listed, ok bool) {
	err := guard.Call(func() error {
		obj := f.Lister.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, obj); err != nil {
			return err
		}
		c.Member = f.Member(obj, generator, f.isSkipped(obj))
		c.said = conditions.Has(conditions.For(obj, &obj.GetStatus().Conditions), v1alpha1.ConditionRolloutStopped)
		return nil
	})
	return c, err == nil
}

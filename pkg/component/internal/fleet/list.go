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

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
)

// pageSize is how many components a request lists.
const pageSize = 500

// Lister has the components of an operator.
type Lister struct {
	// Server reads from the API server, Cache from the cache of the manager.
	Server, Cache client.Reader
	// Namespace is the only namespace in which the operator has rights; empty: there may be more.
	Namespace string
	// Selector selects the components of the operator; nil: all.
	Selector labels.Selector
	// New returns an empty component.
	New func() identity.Component
}

// list lists all components that the manager's cache has, as the server has them. The cache may be limited to a few namespaces; before
// it is started, all components count. A component that cannot be decoded is left out: it is not reconciled either.
func (f *Fleet) list(ctx context.Context, generator string) (members, error) {
	cached := &metav1.PartialObjectMetadataList{}
	cached.SetGroupVersionKind(f.Self.ListKind())
	err := f.Lister.Cache.List(ctx, cached)
	_, stopped := errors.AsType[*cache.ErrCacheNotStarted](err)
	if err != nil && !stopped {
		return nil, err
	}
	ours, namespaces := map[client.ObjectKey]bool{}, map[string]bool{}
	for i := range cached.Items {
		ours[client.ObjectKeyFromObject(&cached.Items[i])], namespaces[cached.Items[i].Namespace] = true, true
	}
	counts := func(key client.ObjectKey) bool { return stopped || ours[key] }
	found, err := f.listIn(ctx, generator, counts, f.Lister.Namespace)
	if !apierrors.IsForbidden(err) || f.Lister.Namespace != "" {
		return found, err
	}
	return f.listIn(ctx, generator, counts, slices.Sorted(maps.Keys(namespaces))...)
}

// listIn lists the components of namespaces that count; the name of all namespaces is empty.
func (f *Fleet) listIn(ctx context.Context, generator string, counts func(client.ObjectKey) bool, namespaces ...string) (members, error) {
	found := members{}
	for _, namespace := range namespaces {
		for options := (client.ListOptions{Namespace: namespace, LabelSelector: f.Lister.Selector, Limit: pageSize}); ; {
			page := &unstructured.UnstructuredList{}
			page.SetGroupVersionKind(f.Self.ListKind())
			if err := f.Lister.Server.List(ctx, page, &options); err != nil {
				return nil, err
			}
			for i := range page.Items {
				key := client.ObjectKeyFromObject(&page.Items[i])
				if page.Items[i].GetDeletionTimestamp() != nil || !counts(key) {
					continue
				}
				if m, ok := f.decode(generator, &page.Items[i]); ok {
					found[key] = m
				}
			}
			if options.Continue = page.GetContinue(); options.Continue == "" {
				break
			}
		}
	}
	return found, nil
}

// decode returns the state of a component that was listed. It is false if the component cannot be decoded, or a method of it panics.
func (f *Fleet) decode(generator string, item *unstructured.Unstructured) (m Member, ok bool) {
	err := guard.Call(func() error {
		obj := f.Lister.New()
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(item.Object, obj); err != nil {
			return err
		}
		m = f.Member(obj, generator, f.isSkipped(obj))
		return nil
	})
	return m, err == nil
}

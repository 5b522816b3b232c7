// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookup

import (
	"context"
	"errors"
	"fmt"
	"math"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

const (
	// pageSize is how many objects of a list are read at a time.
	pageSize = 500
	// maxItems limits how many objects a list may have.
	//
	// Unit: objects
	// Limit: the objects in a list that the function lookup returns.
	maxItems = 10_000
)

// Function is the signature of lookup.
type Function = func(apiVersion, kind, namespace, name string) (map[string]any, error)

// Disabled is in place of lookup where it is switched off.
func Disabled(string, string, string, string) (map[string]any, error) {
	return nil, errors.New("lookup is not available: it is switched off for these templates")
}

// For returns the function lookup, which reads objects of the target cluster
// as the user that writes the dependent objects. Objects that take more
// bytes than the limit are not copied: templates get an excess.Error.
func For(ctx context.Context, limit int64) Function {
	return func(apiVersion, kind, namespace, name string) (map[string]any, error) {
		c := manifests.FromContext(ctx).Client
		if c == nil {
			return nil, errors.New("the context holds no client of the target cluster")
		}
		gv, err := schema.ParseGroupVersion(apiVersion)
		if err != nil || gv.Version == "" || kind == "" {
			return nil, fmt.Errorf("apiVersion %q, kind %q: both are needed, the first as in \"v1\" or \"apps/v1\"", apiVersion, kind)
		}
		var result map[string]any
		if name != "" {
			result, err = one(ctx, c, gv.WithKind(kind), client.ObjectKey{Namespace: namespace, Name: name}, limit)
		} else {
			result, err = list(ctx, c, gv.WithKind(kind), namespace, limit)
		}
		if apierrors.IsNotFound(err) {
			return map[string]any{}, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", kind, client.ObjectKey{Namespace: namespace, Name: name}, err)
		}
		return result, nil
	}
}

func one(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, key client.ObjectKey, limit int64) (map[string]any, error) {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(gvk)
	if err := c.Get(ctx, key, object); err != nil {
		return nil, err
	}
	return copied(object, &limit)
}

// copied returns a copy of an object, which may belong to a cache, while templates can change their
// arguments. It subtracts the size of the object from left.
func copied(object *unstructured.Unstructured, left *int64) (map[string]any, error) {
	*left -= int64(jsonsize.Of(object.Object, int(min(*left, math.MaxInt32))))
	if *left < 0 {
		return nil, &excess.Error{Message: "the objects take more bytes than functions may work on in one rendering"}
	}
	return object.DeepCopy().Object, nil
}

func list(ctx context.Context, c client.Client, gvk schema.GroupVersionKind, namespace string, left int64) (map[string]any, error) {
	items := []any{}
	listKind := gvk.GroupVersion().WithKind(gvk.Kind + "List")
	for next := ""; ; {
		page := &unstructured.UnstructuredList{}
		page.SetGroupVersionKind(listKind)
		if err := c.List(ctx, page, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(next)); err != nil {
			return nil, err
		}
		for i := range page.Items {
			item, err := copied(&page.Items[i], &left)
			if err != nil {
				return nil, err
			}
			items = append(items, item)
		}
		if len(items) > maxItems {
			return nil, &excess.Error{Message: fmt.Sprintf("there are more than %d objects", maxItems)}
		}
		if next = page.GetContinue(); next == "" {
			break
		}
	}
	return map[string]any{
		"apiVersion": gvk.GroupVersion().String(),
		"kind":       listKind.Kind,
		"metadata":   map[string]any{},
		"items":      items,
	}, nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Types knows the types that the server serves. Its answers are cached until [Types.Forget] is
// called; that something is not served is never cached, because a type that is missing now may come
// at any moment. It is safe for concurrent use.
type Types struct {
	objects *Objects
	timeout time.Duration
	flights singleflight.Group

	lock    sync.RWMutex
	served  map[schema.GroupVersionKind]Resource
	customs map[schema.GroupVersionKind]rememberedCustom
	memory  servedMemory
}

func newTypes(objects *Objects, timeout time.Duration) *Types {
	return &Types{
		objects: objects,
		timeout: timeout,
		served:  map[schema.GroupVersionKind]Resource{},
		customs: map[schema.GroupVersionKind]rememberedCustom{},
	}
}

// Resolve returns how objects of the type are addressed. A [*NotServedError]
// means that the type is provably not served at this moment; any other error
// means that it is not known.
func (t *Types) Resolve(ctx context.Context, gvk schema.GroupVersionKind) (Resource, error) {
	if resource, ok := t.Known(gvk); ok {
		return resource, nil
	}
	list, err := t.version(ctx, gvk.GroupVersion())
	if err != nil {
		return Resource{}, err
	}
	if resource, ok := list[gvk.Kind]; ok {
		return resource, nil
	}
	return Resource{}, &NotServedError{Group: gvk.Group, Version: gvk.Version, Kind: gvk.Kind}
}

// ResolveAny is like Resolve, but when the preferred version (which may be
// empty) is not served, it tries the other versions of the group. It is for
// reading and deleting objects that were recorded with a version that is no
// longer served; not for writing, because a manifest fits its own version only.
// A [*NotServedError] means that no version is served.
func (t *Types) ResolveAny(ctx context.Context, gk schema.GroupKind, preferred string) (Resource, error) {
	if preferred != "" {
		resource, err := t.Resolve(ctx, gk.WithVersion(preferred))
		if err == nil || !isNotServed(err) {
			return resource, err
		}
	}
	versions, err := t.Versions(ctx, gk.Group)
	if err != nil {
		return Resource{}, err
	}
	var unknown []error
	for _, version := range versions {
		resource, err := t.Resolve(ctx, gk.WithVersion(version))
		if err == nil {
			return resource, nil
		}
		if !isNotServed(err) {
			unknown = append(unknown, err)
		}
	}
	if len(unknown) > 0 {
		return Resource{}, errors.Join(unknown...)
	}
	return Resource{}, &NotServedError{Group: gk.Group, Kind: gk.Kind}
}

// Kinds returns all types of a version of a group, by kind, as the server lists
// them at this moment. A version that is provably not served has none.
func (t *Types) Kinds(ctx context.Context, gv schema.GroupVersion) (map[string]Resource, error) {
	list, err := t.version(ctx, gv)
	return maps.Clone(list), err
}

// Versions returns the versions of a group, the preferred one first, as the
// server lists them at this moment. A group that is provably not served has none.
func (t *Types) Versions(ctx context.Context, group string) ([]string, error) {
	return shared(ctx, t, "versions "+group, func(ctx context.Context) ([]string, error) {
		groups, err := t.fetchGroups(ctx, group == "")
		return groups[group], err
	})
}

// Forget drops the cached answer about a type, after it proved to be wrong.
func (t *Types) Forget(gvk schema.GroupVersionKind) {
	t.lock.Lock()
	defer t.lock.Unlock()
	delete(t.served, gvk)
	delete(t.customs, gvk)
}

func (t *Types) forgetResource(r Resource) { t.Forget(r.GVK()) }

// Known returns how objects of the type are addressed if that is remembered. It sends no request.
func (t *Types) Known(gvk schema.GroupVersionKind) (Resource, bool) {
	t.lock.RLock()
	defer t.lock.RUnlock()
	resource, ok := t.served[gvk]
	return resource, ok
}

// version asks the server for the types of a version and remembers them. Callers
// at the same time share one request; it does not end with the context of the first one.
func (t *Types) version(ctx context.Context, gv schema.GroupVersion) (map[string]Resource, error) {
	return shared(ctx, t, "version "+gv.String(), func(ctx context.Context) (map[string]Resource, error) {
		list, err := t.fetchVersion(ctx, gv)
		if err != nil {
			return nil, err
		}
		t.lock.Lock()
		defer t.lock.Unlock()
		for kind, resource := range list {
			t.served[gv.WithKind(kind)] = resource
		}
		return list, nil
	})
}

func shared[R any](ctx context.Context, t *Types, key string, ask func(context.Context) (R, error)) (result R, err error) {
	flight := t.flights.DoChan(key, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*t.timeout)
		defer cancel()
		return ask(ctx)
	})
	select {
	case <-ctx.Done():
		return result, ctx.Err()
	case answer := <-flight:
		result, _ = answer.Val.(R)
		return result, answer.Err
	}
}

func isNotServed(err error) bool {
	_, ok := errors.AsType[*NotServedError](err)
	return ok
}

// Resource is a type that the server serves, and how it is addressed.
type Resource struct {
	GVR  schema.GroupVersionResource
	Kind string
	// Namespaced reports whether objects of the type live in namespaces.
	Namespaced bool
	// Verbs are the verbs that the server supports for the type, such as "list".
	Verbs []string
	// Subresources are parts with a path of their own, such as "status" and "scale".
	Subresources []string
}

// Can reports whether the server offers a verb for the type.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Has reports whether objects of the type have a subresource.
func (r Resource) Has(subresource string) bool { return slices.Contains(r.Subresources, subresource) }

// GVK returns the type in the version that the resource addresses.
func (r Resource) GVK() schema.GroupVersionKind { return r.GVR.GroupVersion().WithKind(r.Kind) }

// path returns the segments of the path of an object, or of the collection if name is empty.
func (r Resource) path(namespace, name string) ([]string, error) {
	for _, segment := range []string{namespace, name} {
		// "..", for example, would lead to another object.
		if mistakes := content.IsPathSegmentName(segment); len(mistakes) > 0 {
			return nil, fmt.Errorf("%q cannot be part of a path: %s", segment, strings.Join(mistakes, ", "))
		}
	}
	segments := groupVersionPath(r.GVR.GroupVersion())
	// The scope may have changed since the type was looked up; so this is no
	// mistake of the caller until it is looked up again.
	switch {
	case namespace != "" && !r.Namespaced:
		return nil, &UnservedPathError{Resource: r, Err: errors.New("its objects do not live in namespaces")}
	case namespace != "":
		segments = append(segments, "namespaces", namespace)
	case r.Namespaced && name != "":
		return nil, &UnservedPathError{Resource: r, Err: fmt.Errorf("its objects live in namespaces, and none is given for %s", name)}
	}
	if segments = append(segments, r.GVR.Resource); name != "" {
		segments = append(segments, name)
	}
	return segments, nil
}

func groupVersionPath(gv schema.GroupVersion) []string {
	if gv.Group == "" {
		return []string{"api", gv.Version}
	}
	return []string{"apis", gv.Group, gv.Version}
}

func gvr(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// splitPath splits the path of a field, such as ".spec.replicas".
func splitPath(path string) []string {
	if path == "" {
		return nil
	}
	return strings.Split(strings.TrimPrefix(path, "."), ".")
}

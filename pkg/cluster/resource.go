// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Resource is a type that the server serves, and how it is addressed.
type Resource struct {
	GVR  schema.GroupVersionResource
	Kind string
	// Namespaced tells whether objects of the type live in namespaces.
	Namespaced bool
	// Verbs are what the server can do with objects of the type, such as "list".
	Verbs []string
	// Subresources are parts with a path of their own, such as "status" and "scale".
	Subresources []string
}

// Can tells whether the server offers a verb for the type.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Has tells whether objects of the type have a subresource.
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apimeta "k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Category is the category of the types of components. A custom resource definition gets it by the marker
// "+kubebuilder:resource:categories=corbel".
const Category = "corbel"

// Client reads from the server. A client.WithWatch is one.
type Client interface {
	client.Reader
	// Watch watches objects of the type of the list.
	Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error)
}

// Reader reads components. It is not safe for concurrent use until Types or Resources was called once.
type Reader struct {
	// Client reads from the server, without a cache.
	Client Client
	// Mapper maps kinds to resources.
	Mapper apimeta.RESTMapper
	// Discovery lists what the server serves.
	Discovery discovery.ServerResourcesInterface

	resources []Type
	partial   error // groups that could not be listed
}

// Type is a type of objects.
type Type struct {
	schema.GroupVersionKind
	// Resource is the plural, such as "shops".
	Resource string
	// Singular is the singular, such as "shop".
	Singular string
	// ShortNames are further names.
	ShortNames []string
	// Namespaced reports whether the objects are in namespaces.
	Namespaced bool
	// Component reports whether the type has the category of components.
	Component bool
}

// String is the plural with the group, as kubectl writes it.
func (t Type) String() string {
	return schema.GroupResource{Group: t.Group, Resource: t.Resource}.String()
}

// Resources returns all types that the server serves, in their preferred versions. Groups that cannot be listed,
// such as one of an API service that is down, are left out; the error of Types names them if nothing else was found.
func (r *Reader) Resources() ([]Type, error) {
	if r.resources != nil {
		return r.resources, nil
	}
	lists, err := discovery.ServerPreferredResources(r.Discovery.(discovery.DiscoveryInterface))
	if err != nil && len(lists) == 0 {
		return nil, fmt.Errorf("list the types that the server serves: %w", err)
	}
	r.partial = err
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "get") {
				continue
			}
			r.resources = append(r.resources, Type{
				GroupVersionKind: gv.WithKind(resource.Kind), Resource: resource.Name, Singular: strings.ToLower(resource.SingularName),
				ShortNames: resource.ShortNames, Namespaced: resource.Namespaced, Component: slices.Contains(resource.Categories, Category),
			})
		}
	}
	slices.SortStableFunc(r.resources, func(a, b Type) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource)) })
	return r.resources, nil
}

// Unlisted says which groups Resources left out, because they could not be listed; nil if it left out none.
func (r *Reader) Unlisted() error { return r.partial }

// ErrNoTypes means that the server serves no type of components.
var ErrNoTypes = errors.New("the cluster has no type of components")

// Types returns the types of components: those of the category.
func (r *Reader) Types() ([]Type, error) {
	all, err := r.Resources()
	if err != nil {
		return nil, err
	}
	var types []Type
	for _, t := range all {
		if t.Component {
			types = append(types, t)
		}
	}
	if len(types) == 0 {
		return nil, errors.Join(ErrNoTypes, r.partial)
	}
	return types, nil
}

// UnknownKindError means that the server serves no type of a name.
type UnknownKindError struct {
	// Name is what was asked for.
	Name string
	// Cause may say that some types could not be listed.
	Cause error
}

// Error says what is wrong.
func (e *UnknownKindError) Error() string {
	text := fmt.Sprintf("the server has no type %q", e.Name)
	if e.Cause != nil {
		text += fmt.Sprintf(" (not all types could be listed: %v)", e.Cause)
	}
	return text
}

// AmbiguousError means that a name means several things.
type AmbiguousError struct {
	// Name is what was asked for, and Matches are what it may mean.
	Name    string
	Matches []string
}

// Error lists the matches.
func (e *AmbiguousError) Error() string {
	return fmt.Sprintf("%q may mean %s", e.Name, strings.Join(e.Matches, " or "))
}

// Resolve returns the type of a name: the plural, the singular, a short name or the kind, in any case, with or
// without a dot and the group after it, or a version and the group. A type of components takes precedence.
func (r *Reader) Resolve(name string) (Type, error) {
	all, err := r.Resources()
	if err != nil {
		return Type{}, err
	}
	var found, components []Type
	for _, t := range all {
		if !t.isCalled(name) {
			continue
		}
		found = append(found, t)
		if t.Component {
			components = append(components, t)
		}
	}
	if len(components) > 0 {
		found = components
	}
	switch len(found) {
	case 0:
		return Type{}, &UnknownKindError{Name: name, Cause: r.partial}
	case 1:
		return found[0], nil
	}
	if i := slices.IndexFunc(found, func(t Type) bool { return t.Group == "" }); i >= 0 {
		return found[i], nil // as kubectl: the core group comes first
	}
	ambiguous := &AmbiguousError{Name: name}
	for _, t := range found {
		ambiguous.Matches = append(ambiguous.Matches, t.String())
	}
	return Type{}, ambiguous
}

func (t Type) isCalled(name string) bool {
	name = strings.ToLower(name)
	for _, own := range append([]string{t.Resource, t.Singular, strings.ToLower(t.Kind)}, t.ShortNames...) {
		if own != "" && (name == own || name == own+"."+t.Group || name == own+"."+t.Version+"."+t.Group) {
			return true
		}
	}
	return false
}

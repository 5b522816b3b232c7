// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	apiregistrationhelper "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1/helper"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

var (
	definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}
	apiServiceKind = schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}
	namespaceKind  = schema.GroupKind{Kind: "Namespace"}
)

// instances counts the instances of the types that a CustomResourceDefinition or
// an APIService brings. Deleting the former deletes them all, whoever made them.
// Those of the uids count apart.
func (e *Executor) instances(ctx context.Context, owner plan.Owner, key plan.Key, owns Owns, kept []types.UID) (*census, error) {
	found := &census{owns: owns, owner: owner, kept: kept}
	if !strings.Contains(key.Name, ".") {
		return nil, fmt.Errorf("the name does not say which types it brings")
	}
	switch key.GroupKind() {
	case definitionKind:
		return found, e.definedInstances(ctx, found, key.Name)
	case apiServiceKind:
		return found, e.aggregatedInstances(ctx, found, apiregistrationhelper.APIServiceNameToGroupVersion(key.Name))
	default:
		return nil, fmt.Errorf("objects of kind %s bring no types", key.Kind)
	}
}

// definedInstances counts the instances of a CustomResourceDefinition. All
// versions show the same objects; the first one that can be listed will do,
// because a conversion between versions may be out of order.
func (e *Executor) definedInstances(ctx context.Context, found *census, definition string) error {
	versions, failures := e.definedTypes(ctx, definition)
	for _, resource := range versions {
		one := &census{owns: found.owns, owner: found.owner, kept: found.kept}
		err := one.take(ctx, e.objects, resource, "")
		if err == nil {
			*found = *one
			return nil
		}
		failures = append(failures, err)
	}
	if len(failures) > 0 {
		return fmt.Errorf("whether instances exist is not known: %w", errors.Join(failures...))
	}
	return e.unservedInstances(ctx, found, definition)
}

// definedTypes returns the served versions of the type that the definition of
// the name brings.
func (e *Executor) definedTypes(ctx context.Context, definition string) (resources []cluster.Resource, failures []error) {
	plural, group, _ := strings.Cut(definition, ".")
	versions, err := e.types.Versions(ctx, group)
	if err != nil {
		return nil, []error{err}
	}
	for _, version := range versions {
		kinds, err := e.types.Kinds(ctx, schema.GroupVersion{Group: group, Version: version})
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, resource := range kinds {
			if resource.GVR.Resource == plural {
				resources = append(resources, resource)
			}
		}
	}
	return resources, failures
}

var definitions = cluster.Resource{
	GVR:  schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind: "CustomResourceDefinition",
}

// unservedInstances judges a definition of which the server serves no version.
// If it was never established, nothing can have been stored.
func (e *Executor) unservedInstances(ctx context.Context, found *census, name string) error {
	definition, err := e.objects.Get(ctx, definitions, "", name)
	if cluster.IsNotFound(err, definitions, name) {
		return nil
	}
	if err != nil {
		return err
	}
	if hasCondition(definition, "Established") {
		found.unknown = append(found.unknown, "no version of it is served, so that its instances cannot be counted")
	}
	return nil
}

// hasCondition tells whether a condition of the object is True.
func hasCondition(object *unstructured.Unstructured, name string) bool {
	conditions, _, _ := unstructured.NestedSlice(object.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, _ := condition.(map[string]any)
		return fields["type"] == name && fields["status"] == "True"
	})
}

// aggregatedInstances counts the instances of the types of an aggregated server.
// The deletion of an APIService deletes none of them, it only hides them. So a
// server that does not answer, as it is removed before its APIService, does not
// keep the latter alive. Types that can only be read, such as metrics, hold nothing.
func (e *Executor) aggregatedInstances(ctx context.Context, found *census, gv schema.GroupVersion) error {
	kinds, err := e.types.Kinds(ctx, gv)
	if isOutOfOrder(err) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		resource := kinds[kind]
		if !resource.Can("list") || !resource.Can("delete") {
			continue
		}
		err := found.take(ctx, e.objects, resource, "")
		if err != nil && !isOutOfOrder(err) && !apierrors.IsMethodNotSupported(err) {
			return err
		}
	}
	return nil
}

func isOutOfOrder(err error) bool {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	return unserved || apierrors.IsServiceUnavailable(err)
}

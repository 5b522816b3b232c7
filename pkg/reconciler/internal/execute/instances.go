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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// instances looks for instances of the types that an object brings. Deleting a
// CustomResourceDefinition deletes them all, whoever made them. It returns a
// sentence that names some, or nothing if there are none.
func (e *Executor) instances(ctx context.Context, step plan.Step) (string, error) {
	prefix, group, ok := strings.Cut(step.Key.Name, ".")
	if !ok {
		return "", fmt.Errorf("the name does not tell what types it brings")
	}
	switch step.Key.GroupKind() {
	case schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}:
		return e.definedInstances(ctx, step.Key.Name, group, prefix)
	case schema.GroupKind{Group: "apiregistration.k8s.io", Kind: "APIService"}:
		return e.aggregatedInstances(ctx, schema.GroupVersion{Group: group, Version: prefix})
	default:
		return "", fmt.Errorf("objects of kind %s bring no types", step.Key.Kind)
	}
}

// definedInstances looks for instances of a CustomResourceDefinition. All
// versions show the same objects; the first one that can be listed will do,
// because a conversion between versions may be out of order.
func (e *Executor) definedInstances(ctx context.Context, definition, group, plural string) (string, error) {
	versions, err := e.types.Versions(ctx, group)
	if err != nil {
		return "", err
	}
	var failures []error
	for _, version := range versions {
		kinds, err := e.types.Kinds(ctx, schema.GroupVersion{Group: group, Version: version})
		if err != nil {
			failures = append(failures, err)
			continue
		}
		for _, resource := range kinds {
			if resource.GVR.Resource != plural {
				continue
			}
			count, err := e.countInstances(ctx, resource)
			if err == nil {
				return count.String(), nil
			}
			failures = append(failures, err)
		}
	}
	if len(failures) > 0 {
		return "", fmt.Errorf("whether instances exist is not known: %w", errors.Join(failures...))
	}
	return e.unservedInstances(ctx, definition)
}

var definitions = cluster.Resource{
	GVR:  schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"},
	Kind: "CustomResourceDefinition",
}

// unservedInstances judges a definition of which the server serves no version.
// If it was never established, nothing can have been stored.
func (e *Executor) unservedInstances(ctx context.Context, name string) (string, error) {
	definition, err := e.objects.Get(ctx, definitions, "", name)
	if cluster.IsNotFound(err, definitions, name) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	conditions, _, _ := unstructured.NestedSlice(definition.Object, "status", "conditions")
	for _, condition := range conditions {
		condition, _ := condition.(map[string]any)
		if condition["type"] == "Established" && condition["status"] == "True" {
			return "no version of it is served, so that its instances cannot be counted", nil
		}
	}
	return "", nil
}

// aggregatedInstances looks for instances of the types of an aggregated server.
// The deletion of an APIService deletes none of them, it only hides them. So a
// server that does not answer, as it is removed before its APIService, does not
// keep the latter alive. Types that can only be read, such as metrics, hold nothing.
func (e *Executor) aggregatedInstances(ctx context.Context, gv schema.GroupVersion) (string, error) {
	kinds, err := e.types.Kinds(ctx, gv)
	if isOutOfOrder(err) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	var all instances
	for _, kind := range slices.Sorted(maps.Keys(kinds)) {
		resource := kinds[kind]
		if !resource.Can("list") || !resource.Can("delete") {
			continue
		}
		count, err := e.countInstances(ctx, resource)
		if isOutOfOrder(err) || apierrors.IsMethodNotSupported(err) {
			continue
		}
		if err != nil {
			return "", err
		}
		all.add(count)
	}
	return all.String(), nil
}

func isOutOfOrder(err error) bool {
	_, unserved := errors.AsType[*cluster.UnservedPathError](err)
	return unserved || apierrors.IsServiceUnavailable(err)
}

// countInstances lists some instances by their metadata. The list comes from a
// quorum of the storage, so an instance that was created before is in it.
func (e *Executor) countInstances(ctx context.Context, resource cluster.Resource) (instances, error) {
	list, err := e.objects.ListMetadata(ctx, resource, "", cluster.ListOptions{Limit: 2 * maxNamed})
	if err != nil {
		return instances{}, fmt.Errorf("list the instances of %s: %w", resource.Kind, err)
	}
	var found instances
	for _, item := range list.Items {
		found.total++
		found.terminating += isTerminating(item)
		found.names = append(found.names, plan.Key{Kind: resource.Kind, Namespace: item.Namespace, Name: item.Name}.String())
	}
	switch {
	case list.RemainingItemCount != nil:
		found.total += int(*list.RemainingItemCount)
	case list.Continue != "":
		found.total++ // at least
	}
	return found, nil
}

func isTerminating(item metav1.PartialObjectMetadata) int {
	if item.DeletionTimestamp != nil {
		return 1
	}
	return 0
}

// instances are some objects and how many there are.
type instances struct {
	names              []string
	total, terminating int
}

func (i *instances) add(other instances) {
	i.names = append(i.names, other.names...)
	i.total += other.total
	i.terminating += other.terminating
}

// String is why they block a deletion; empty if there are none.
func (i instances) String() string {
	what := "instances"
	if i.total == 1 {
		what = "instance"
	}
	switch {
	case i.total == 0:
		return ""
	case i.terminating == i.total:
		return fmt.Sprintf("%d %s still being deleted: %s", i.total, what, enumerate(i.names, i.total))
	default:
		return fmt.Sprintf("%d %s: %s", i.total, what, enumerate(i.names, i.total))
	}
}

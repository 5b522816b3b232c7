// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// Build returns the desired objects, ordered by their keys. Mistakes in the
// objects are reported together as one InvalidError. If types could not be
// resolved, the error of that is returned, joined with the InvalidError if there
// are mistakes as well.
func Build(ctx context.Context, in Input) ([]plan.Desired, error) {
	items, err := read(in.Objects, in.Scheme)
	if err != nil {
		return nil, &InvalidError{Err: err}
	}
	for _, item := range items {
		item.identify()
		item.aside = in.HooksOnly && !item.isHook(in.Name)
	}
	unresolved := place(ctx, in, items)
	for _, item := range items {
		item.finish(in)
	}
	// Without the namespaces of some objects, neighbours cannot be told.
	if unresolved == nil {
		relate(items, in.Managed)
	}
	if err := errors.Join(invalid(items), unresolved); err != nil {
		return nil, err
	}
	slices.SortFunc(items, func(a, b *item) int { return a.key.Compare(b.key) })
	objects := make([]plan.Desired, 0, len(items))
	for _, item := range items {
		if !item.aside {
			objects = append(objects, item.desired(in))
		}
	}
	return objects, nil
}

// isHook tells whether the object runs before or after a deletion, or says
// something about that which has yet to be understood.
func (i *item) isHook(name string) bool {
	return at(i.content, "metadata", "annotations", name+"/"+v1alpha1.AnnotationRunOn) != nil
}

// invalid unites the mistakes of all items.
func invalid(items []*item) error {
	var mistakes []error
	for _, item := range items {
		if item.aside {
			continue
		}
		for _, mistake := range item.mistakes {
			mistakes = append(mistakes, fmt.Errorf("%s: %w", item.title(), mistake))
		}
	}
	if len(mistakes) == 0 {
		return nil
	}
	return &InvalidError{Err: errors.Join(mistakes...)}
}

// desired returns the item in the form that the planner works with.
func (i *item) desired(in Input) plan.Desired {
	mark(i.content, in.Name, in.Owner)
	return plan.Desired{
		Key:         i.key,
		Version:     i.version,
		Policies:    i.policies,
		Digest:      i.digest,
		HasTTL:      i.key.GroupKind() == kindJob && at(i.content, "spec", "ttlSecondsAfterFinished") != nil,
		Defines:     i.defines,
		ScaleTarget: i.scales(),
		Manifest:    &unstructured.Unstructured{Object: i.content},
	}
}

// scales returns the object whose number of replicas the item decides about, if it
// configures an autoscaler.
func (i *item) scales() *plan.Key {
	target := plan.Key{Namespace: i.key.Namespace}
	switch i.key.GroupKind() {
	case schema.GroupKind{Group: "autoscaling", Kind: "HorizontalPodAutoscaler"}:
	case schema.GroupKind{Group: "keda.sh", Kind: "ScaledObject"}:
		target.Group, target.Kind = "apps", "Deployment"
	default:
		return nil
	}
	reference := at(i.content, "spec", "scaleTargetRef")
	if gv, err := schema.ParseGroupVersion(text(reference, "apiVersion")); err == nil && !gv.Empty() {
		target.Group = gv.Group
	}
	target.Kind, target.Name = cmp.Or(text(reference, "kind"), target.Kind), text(reference, "name")
	return &target
}

// ManifestDigest identifies a set of objects, whatever their order.
func ManifestDigest(objects []plan.Desired) string {
	lines := make([]string, len(objects))
	for i, object := range objects {
		key := object.Key
		// No part of a key can hold a slash.
		lines[i] = strings.Join([]string{key.Group, key.Kind, key.Namespace, key.Name, object.Digest}, "/")
	}
	slices.Sort(lines)
	return digest.Combine(lines...)
}

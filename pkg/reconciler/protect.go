// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// protectedBy returns the objects that must not be dependents of the owner.
func protectedBy(owner Owner, others []Key) map[Key]bool {
	protected := map[Key]bool{
		{Group: owner.Group, Kind: owner.Kind, Namespace: owner.Namespace, Name: owner.Name}: true,
	}
	for _, key := range others {
		protected[key] = true
	}
	return protected
}

// checkSafety refuses sets of objects that would destroy what they stand on.
func checkSafety(in plan.Input, objects []plan.Desired, allowEmpty bool) error {
	var mistakes []error
	for _, object := range objects {
		// A namespace is only kept: that it is there is all that anybody needs of it.
		if in.Protected[object.Key] && object.Key.GroupKind() != (schema.GroupKind{Kind: "Namespace"}) {
			mistakes = append(mistakes, fmt.Errorf("%s: %s needs it, or is it, and cannot manage it itself", object.Key, in.Owner.Ref.Title()))
		}
		if group, shadows := shadowed(object); shadows {
			mistakes = append(mistakes, fmt.Errorf("%s: the group %q belongs to the cluster itself and cannot be served by anything else", object.Key, group))
		}
	}
	if len(in.Desired) == 0 && !allowEmpty {
		mistakes = append(mistakes, checkEmpty(in)...)
	}
	return errors.Join(mistakes...)
}

// shadowed returns the built-in group that an APIService or a definition claims.
func shadowed(object plan.Desired) (group string, shadows bool) {
	switch object.Key.Kind {
	case "APIService", "CustomResourceDefinition":
	default:
		return "", false
	}
	if object.Manifest == nil || len(object.Defines) == 0 {
		return "", false
	}
	group, _, _ = unstructured.NestedString(object.Manifest.Object, "spec", "group")
	return group, cluster.IsBuiltIn(group)
}

// checkEmpty finds what would be lost if nothing were wanted any more.
func checkEmpty(in plan.Input) []error {
	var first string
	count := 0
	for _, item := range in.Recorded {
		switch {
		case item.DeletePolicy == v1alpha1.DeletePolicyOrphan || item.DeletePolicy == v1alpha1.DeletePolicyOrphanOnApply:
			continue
		case item.Phase == v1alpha1.PhaseCompleted || item.Phase == v1alpha1.PhaseReleased:
			continue
		}
		if count++; count == 1 {
			first = plan.KeyOf(item).String()
		}
	}
	if count == 0 {
		return nil
	}
	return []error{fmt.Errorf(
		"no object is wanted, so everything that was applied (%d objects, such as %s) would be deleted; if that is meant, set the annotation %s/%s: \"true\" on %s",
		count, first, in.Name, v1alpha1.AnnotationAllowEmpty, in.Owner.Ref.Title())}
}

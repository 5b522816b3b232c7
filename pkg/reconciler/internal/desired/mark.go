// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// mark sets our marks. They are no part of the digest: it is about what the user wants.
func mark(content map[string]any, name string, owner plan.Owner) {
	metadata := content["metadata"].(map[string]any)
	set(metadata, "labels", name+"/"+v1alpha1.LabelOwnerID, owner.ID)
	set(metadata, "annotations", name+"/"+v1alpha1.AnnotationOwner, owner.Ref.String())
}

// unmark removes marks that came with the manifest: who rendered them from a
// live object does not get to say who owns this one.
func unmark(content map[string]any, name string) {
	metadata := content["metadata"].(map[string]any)
	unset(metadata, "labels", name+"/"+v1alpha1.LabelOwnerID)
	unset(metadata, "annotations", name+"/"+v1alpha1.AnnotationOwner)
}

func set(metadata map[string]any, field, name, value string) {
	values, isMap := metadata[field].(map[string]any)
	if !isMap {
		values = map[string]any{}
		metadata[field] = values
	}
	values[name] = value
}

// unset removes a value, and the map if nothing is left: empty labels are none.
func unset(metadata map[string]any, field, name string) {
	values, _ := metadata[field].(map[string]any)
	delete(values, name)
	if len(values) == 0 {
		delete(metadata, field)
	}
}

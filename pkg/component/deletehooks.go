// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// addDeleteHooks renders what runs before and after the deletion. That is done
// only if the record says that there is any, and the component does not skip it.
func (h *handler[T]) addDeleteHooks(ctx context.Context, obj T, request *reconciler.DeleteRequest, componentDigest string) error {
	if !request.Inventory.DeleteHooks {
		return nil
	}
	if obj.GetAnnotations()[h.settings.name+"/"+v1alpha1.AnnotationSkipDeleteHooks] == "true" {
		request.SkipHooks = true
		return nil
	}
	wanted, err := directivesOf(obj, h.settings)
	if err != nil {
		return &invalidError{h.about(obj, err)}
	}
	objects, err := h.render(ctx, obj, wanted)
	if err != nil {
		return err
	}
	request.Objects, request.Namespace, request.Policies = objects, wanted.namespace, wanted.policies
	request.ComponentDigest, request.Confirm = componentDigest, h.confirm(obj)
	return nil
}

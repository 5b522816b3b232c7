// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// addDeleteHooks renders what runs before and after the deletion. That is done
// only if the record says that there is any, and the component does not skip it.
func (h *handler[T]) addDeleteHooks(ctx context.Context, obj T, request *reconciler.DeleteRequest, componentDigest string) error {
	if !request.Inventory.DeleteHooks {
		return nil
	}
	annotation := h.settings.name + "/" + v1alpha1.AnnotationSkipDeleteHooks
	skip, err := flagOf(obj, annotation)
	if err != nil {
		return &invalidError{h.about(obj, err)}
	}
	if request.SkipHooks = skip; skip {
		return nil
	}
	wanted, err := directivesOf(obj, h.settings)
	if err != nil {
		return &invalidError{h.about(obj, err)}
	}
	objects, err := h.render(ctx, obj, wanted)
	if err != nil {
		delay := h.activity.Next(client.ObjectKeyFromObject(obj))
		return types.NewRetriableError(fmt.Errorf(
			`render what runs before and after the deletion: %w; to delete without that, set the annotation %s: "true"`, err, annotation), &delay)
	}
	request.Objects, request.Namespace, request.Policies = objects, wanted.namespace, wanted.policies
	request.ComponentDigest, request.Confirm = componentDigest, h.confirm(obj)
	return nil
}

// flagOf reads an annotation that is true or false; by default it is false.
func flagOf(c Component, annotation string) (bool, error) {
	switch value := c.GetAnnotations()[annotation]; value {
	case "", "false":
		return false, nil
	case "true":
		return true, nil
	default:
		return false, fmt.Errorf(`annotation %s: %q must be "true" or "false"`, annotation, value)
	}
}

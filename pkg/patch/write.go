// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxResends limits how often one write is sent again after conflicts.
const maxResends = 5

// write is a change on its way to the server.
type write interface {
	// body is the merge patch, without the precondition.
	body() map[string]any
	// subresource reports whether it goes to the status subresource.
	subresource() bool
	// rebase puts the change on top of the server's state, and reports whether no other client has
	// changed the same fields since before.
	rebase(before, server content) bool
}

// mainWrite changes metadata and spec, or anything else without a subresource.
type mainWrite struct{ changes map[string]any }

func (w mainWrite) body() map[string]any { return maps.Clone(w.changes) }
func (w mainWrite) subresource() bool    { return false }
func (w mainWrite) rebase(before, server content) bool {
	// The next status write builds on the status that was read; and why metadata
	// is written may stand in the annotations.
	return untouched(w.changes, before, server) &&
		reflect.DeepEqual(before.status(), server.status()) &&
		reflect.DeepEqual(annotationsOf(before), annotationsOf(server))
}

func annotationsOf(c content) any {
	metadata, _ := c["metadata"].(map[string]any)
	return metadata["annotations"]
}

// statusWrite changes status.
type statusWrite struct {
	ours           map[string]any // the status that we want
	after, changes map[string]any // the same on top of other clients' changes, and the way there
	owned          []string
}

func (w *statusWrite) body() map[string]any { return map[string]any{"status": w.changes} }
func (w *statusWrite) subresource() bool    { return true }
func (w *statusWrite) rebase(before, server content) bool {
	if reflect.DeepEqual(server.status(), w.after) {
		// An earlier attempt arrived, only its answer did not.
		w.changes = map[string]any{}
		return true
	}
	after, ok := mergeStatus(before.status(), w.ours, server.status(), w.owned)
	if ok {
		w.after, w.changes = after, diff(server.status(), after)
	}
	return ok
}

// purpose is the purpose of a write.
type purpose int

const (
	// beforeActing: something outside the object will be done because of it.
	beforeActing purpose = iota
	// afterActing: it records finished actions.
	afterActing
)

// send writes with the resourceVersion as precondition, and answers conflicts.
func (h *Helper) send(ctx context.Context, obj client.Object, w write, why purpose) (*unstructured.Unstructured, error) {
	resourceVersion := h.resourceVersion
	for resends := 0; ; resends++ {
		sent := time.Now()
		answer, err := h.request(ctx, w, resourceVersion)
		h.refused = nil
		switch {
		case err == nil:
			h.writes++
			h.confirmed = sent
			return answer, nil
		case apierrors.IsNotFound(err):
			return nil, h.explainNotFound(ctx, obj, w, err)
		case !apierrors.IsConflict(err):
			if apierrors.IsInvalid(err) || apierrors.IsForbidden(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err) {
				h.refused = err
			}
			return nil, err
		case resends == maxResends:
			return nil, fmt.Errorf("%w: %d attempts in a row met another change: %w", ErrConflict, resends+1, err)
		}
		server, err := h.readServer(ctx, obj)
		if err != nil {
			return nil, err
		}
		theirs, err := contentOf(server)
		if err != nil {
			return nil, err
		}
		if why == beforeActing {
			if err := h.checkAnnotations(theirs); err != nil {
				return nil, err
			}
		}
		if !w.rebase(h.before, theirs) {
			return nil, fmt.Errorf("%w: what was to be written is no longer as it was read", ErrConflict)
		}
		resourceVersion = server.GetResourceVersion()
	}
}

func (h *Helper) request(ctx context.Context, w write, resourceVersion string) (*unstructured.Unstructured, error) {
	body := w.body()
	metadata, _ := body["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	if metadata == nil {
		metadata = map[string]any{}
	}
	metadata["resourceVersion"] = resourceVersion
	body["metadata"] = metadata
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("encode the patch: %w", err)
	}
	// The answer must come as the server sent it: decoded into the Go type it would lack fields
	// that the type does not know, and keep fields that the server dropped.
	answer := &unstructured.Unstructured{}
	answer.SetGroupVersionKind(h.gvk)
	answer.SetNamespace(h.key.Namespace)
	answer.SetName(h.key.Name)
	patch := client.RawPatch(types.MergePatchType, data)
	if w.subresource() {
		var options []client.SubResourcePatchOption
		if h.owner != "" {
			options = append(options, client.FieldOwner(h.owner))
		}
		return answer, h.client.Status().Patch(ctx, answer, patch, options...)
	}
	var options []client.PatchOption
	if h.owner != "" {
		options = append(options, client.FieldOwner(h.owner))
	}
	return answer, h.client.Patch(ctx, answer, patch, options...)
}

// explainNotFound distinguishes an object that is gone from a subresource that is not served.
func (h *Helper) explainNotFound(ctx context.Context, obj client.Object, w write, notFound error) error {
	if !w.subresource() {
		return fmt.Errorf("%w: %w", ErrConflict, notFound)
	}
	if _, err := h.readServer(ctx, obj); err != nil {
		return err
	}
	return &NoStatusSubresourceError{Object: h.String()}
}

// readServer reads the object from the server. The error is ErrConflict if it is not
// the object that the reconcile is about, or if another client asked for something else.
func (h *Helper) readServer(ctx context.Context, obj client.Object) (client.Object, error) {
	server, err := h.newObject(obj)
	if err != nil {
		return nil, err
	}
	switch err := h.reader.Get(ctx, h.key, server); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", ErrConflict, err)
	case err != nil:
		return nil, fmt.Errorf("read it again: %w", err)
	case server.GetUID() != h.uid:
		return nil, fmt.Errorf("%w: it was deleted and created again", ErrConflict)
	case server.GetGeneration() != h.generation:
		return nil, fmt.Errorf("%w: its generation is %d now", ErrConflict, server.GetGeneration())
	case server.GetDeletionTimestamp() != nil && !h.deleting:
		return nil, fmt.Errorf("%w: it is being deleted now", ErrConflict)
	}
	same, err := h.hasSameContent(server)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, fmt.Errorf("%w: its content is another one now", ErrConflict)
	}
	return server, nil
}

// hasSameContent compares the content of objects of a type that keeps no generation.
func (h *Helper) hasSameContent(server client.Object) (bool, error) {
	if h.generation != 0 {
		return true, nil
	}
	theirs, err := contentOf(server)
	if err != nil {
		return false, err
	}
	known := h.before
	if h.withoutSpec { // before may hold values that stay in memory
		known = h.original
	}
	a, b := known.main(false), theirs.main(false)
	delete(a, "metadata")
	delete(b, "metadata")
	return reflect.DeepEqual(a, b), nil
}

// confirm finds out whether the object on the server still is as it was.
func (h *Helper) confirm(ctx context.Context, obj client.Object) error {
	asked := time.Now()
	server, err := h.readServer(ctx, obj)
	if err != nil {
		return err
	}
	theirs, err := contentOf(server)
	if err != nil {
		return err
	}
	if !reflect.DeepEqual(h.before.status(), theirs.status()) {
		return fmt.Errorf("%w: its status is not as it was read", ErrConflict)
	}
	if err := h.checkAnnotations(theirs); err != nil {
		return err
	}
	h.confirmed = asked
	return nil
}

// checkAnnotations compares the annotations: they belong to no generation and may yet demand
// something, such as an annotation that forbids any change.
func (h *Helper) checkAnnotations(server content) error {
	if !reflect.DeepEqual(annotationsOf(h.before), annotationsOf(server)) {
		return fmt.Errorf("%w: its annotations are not as they were read", ErrConflict)
	}
	return nil
}

// newObject returns an empty object of the same type. Reading into a used one would
// mix old and new.
func (h *Helper) newObject(obj client.Object) (client.Object, error) {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a struct", obj)
	}
	fresh, ok := reflect.New(t.Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("a new %T cannot be made", obj)
	}
	fresh.GetObjectKind().SetGroupVersionKind(h.gvk)
	return fresh, nil
}

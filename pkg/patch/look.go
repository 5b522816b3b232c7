// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import (
	"context"
	"fmt"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// look reads the object from the server. The error is ErrConflict if it is not
// the object that the pass is about, or if somebody asked for something else.
func (h *Helper) look(ctx context.Context, obj client.Object) (client.Object, error) {
	server, err := h.fresh(obj)
	if err != nil {
		return nil, err
	}
	switch err := h.reader.Get(ctx, h.key, server); {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%w: %w", ErrConflict, err)
	case err != nil:
		return nil, fmt.Errorf("read it again: %w", err)
	case server.GetUID() != h.uid:
		return nil, fmt.Errorf("%w: it was deleted and created anew", ErrConflict)
	case server.GetGeneration() != h.generation:
		return nil, fmt.Errorf("%w: its generation is %d now", ErrConflict, server.GetGeneration())
	case server.GetDeletionTimestamp() != nil && !h.deleting:
		return nil, fmt.Errorf("%w: it is being deleted now", ErrConflict)
	}
	same, err := h.asksTheSame(server)
	if err != nil {
		return nil, err
	}
	if !same {
		return nil, fmt.Errorf("%w: its content is another one now", ErrConflict)
	}
	return server, nil
}

// asksTheSame compares the content of objects whose type keeps no generation.
func (h *Helper) asksTheSame(server client.Object) (bool, error) {
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
	server, err := h.look(ctx, obj)
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
	if err := h.decidesTheSame(theirs); err != nil {
		return err
	}
	h.confirmed = time.Now()
	return nil
}

// decidesTheSame compares what belongs to no generation and may yet say what is to be done,
// such as an annotation that asks to leave everything alone.
func (h *Helper) decidesTheSame(server content) error {
	if !reflect.DeepEqual(annotationsOf(h.before), annotationsOf(server)) {
		return fmt.Errorf("%w: its annotations are not as they were read", ErrConflict)
	}
	return nil
}

// fresh returns an empty object of the same type. Reading into a used one would
// mix old and new.
func (h *Helper) fresh(obj client.Object) (client.Object, error) {
	t := reflect.TypeOf(obj)
	if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a struct", obj)
	}
	fresh, ok := reflect.New(t.Elem()).Interface().(client.Object)
	if !ok {
		return nil, fmt.Errorf("%T cannot be made anew", obj)
	}
	fresh.GetObjectKind().SetGroupVersionKind(h.gvk)
	return fresh, nil
}

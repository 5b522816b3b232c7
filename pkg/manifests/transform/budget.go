// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

const (
	// maxObject limits an object that was changed, and the values put into it, in bytes of JSON:
	// the API server accepts no larger request.
	//
	// Limit: an object that a patch or an expression has changed.
	maxObject = 3 << 20
	// maxGrowth limits by how much all objects together may grow.
	//
	// Limit: what patches and expressions add to all objects together.
	maxGrowth = 256 << 20
)

// budget limits the growth of objects in transformers. A patch is short, and there is nothing to
// stop it from matching each object and from adding much to each.
type budget struct {
	// ctx ends the transformer.
	ctx   context.Context
	grown int
	// sizes are the sizes of the objects that were changed.
	sizes map[*unstructured.Unstructured]size
}

// size is the size of an object when it was measured, and the most that was added to it since then.
// To measure it after each change would cost the square of the changes.
type size struct{ bytes, added int }

func newBudget(ctx context.Context) *budget {
	return &budget{ctx: ctx, sizes: map[*unstructured.Unstructured]size{}}
}

// all matches every object.
func all(*unstructured.Unstructured) bool { return true }

// each changes the objects that match; what names the change in errors, and nil removes an object.
// A change adds no more than the given number of bytes. It may be interrupted between two objects.
func (b *budget) each(
	list []*unstructured.Unstructured,
	matches func(*unstructured.Unstructured) bool, what string, adds int,
	change func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) ([]*unstructured.Unstructured, error) {
	var errs []error
	changed := make([]*unstructured.Unstructured, 0, len(list))
	for _, object := range list {
		if matches(object) {
			if err := b.ctx.Err(); err != nil {
				return nil, err
			}
			renders.NoteProgress(b.ctx, what+", "+convert.Name(object))
			before, known := b.sizes[object]
			if !known {
				before.bytes = jsonsize.Of(object.Object, maxGrowth)
			}
			delete(b.sizes, object)
			after, err := change(object)
			if err != nil {
				errs = append(errs, err)
			} else if err := b.spend(after, size{before.bytes, before.added + adds}); err != nil {
				return nil, err
			}
			object = after
		}
		if object != nil {
			changed = append(changed, object)
		}
	}
	return changed, errors.Join(errs...)
}

// spend refuses an object that became too large.
func (b *budget) spend(object *unstructured.Unstructured, before size) error {
	if object == nil {
		return nil
	}
	if before.added <= before.bytes/2 && before.bytes+before.added <= maxObject {
		b.sizes[object] = before
		return nil
	}
	bytes := jsonsize.Of(object.Object, maxGrowth)
	b.sizes[object] = size{bytes: bytes}
	if bytes > maxObject && bytes > before.bytes {
		return fmt.Errorf("%s: it becomes larger than %d bytes, or is nested deeper than %d levels", convert.Name(object), maxObject, jsonsize.MaxDepth)
	}
	if b.grown += max(0, bytes-before.bytes); b.grown > maxGrowth {
		return fmt.Errorf("the objects grow by more than %d bytes", maxGrowth)
	}
	return nil
}

// settle measures the objects that have grown since they were measured.
func (b *budget) settle(list []*unstructured.Unstructured) error {
	var errs []error
	for _, object := range list {
		if size := b.sizes[object]; size.added > 0 {
			size.added = maxObject
			errs = append(errs, b.spend(object, size))
		}
	}
	return errors.Join(errs...)
}

// checkSize refuses a value that is too large to be put into an object.
func checkSize(value any) error {
	if jsonsize.Of(value, maxObject) > maxObject {
		return fmt.Errorf("it is larger than %d bytes once its aliases are expanded, or nested deeper than %d levels", maxObject, jsonsize.MaxDepth)
	}
	return nil
}

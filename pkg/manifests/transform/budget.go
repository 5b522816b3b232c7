// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/jsonsize"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
)

const (
	// maxObject limits an object that was changed, and what is put into it, in bytes
	// of JSON: the API server accepts no larger request.
	//
	// Limit: an object that a patch or an expression has changed.
	maxObject = 3 << 20
	// maxGrowth limits by how much all objects together may grow.
	//
	// Limit: what patches and expressions add to all objects together.
	maxGrowth = 256 << 20
)

// budget limits what transformers make of objects. A patch is short, and there is
// nothing to stop it from matching each object and from adding much to each.
type budget struct {
	// interrupted reports whether, and why, the transformer has to end.
	interrupted func() error
	grown       int
}

// all matches every object.
func all(*unstructured.Unstructured) bool { return true }

// each changes the objects that match; nil removes an object. It may be
// interrupted between two objects.
func (b *budget) each(
	list []*unstructured.Unstructured,
	matches func(*unstructured.Unstructured) bool,
	change func(*unstructured.Unstructured) (*unstructured.Unstructured, error),
) ([]*unstructured.Unstructured, error) {
	var errs []error
	changed := make([]*unstructured.Unstructured, 0, len(list))
	for _, object := range list {
		if matches(object) {
			if err := b.interrupted(); err != nil {
				return nil, err
			}
			before := jsonsize.Of(object.Object, maxGrowth)
			after, err := change(object)
			if err != nil {
				errs = append(errs, err)
			} else if err := b.spend(after, before); err != nil {
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
func (b *budget) spend(object *unstructured.Unstructured, before int) error {
	if object == nil {
		return nil
	}
	size := jsonsize.Of(object.Object, maxGrowth)
	if size > maxObject && size > before {
		return fmt.Errorf("%s: it becomes larger than %d bytes, or is nested deeper than %d levels", convert.Name(object), maxObject, jsonsize.MaxDepth)
	}
	if b.grown += max(0, size-before); b.grown > maxGrowth {
		return fmt.Errorf("the objects grow by more than %d bytes", maxGrowth)
	}
	return nil
}

// checkSize refuses a value that is too large to be put into an object.
func checkSize(value any) error {
	if jsonsize.Of(value, maxObject) > maxObject {
		return fmt.Errorf("it is larger than %d bytes once its aliases are expanded, or nested deeper than %d levels", maxObject, jsonsize.MaxDepth)
	}
	return nil
}

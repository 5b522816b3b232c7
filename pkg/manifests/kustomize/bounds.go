// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
)

// maxCopied limits the bytes that the operations "copy" of one patch add to an
// object.
//
// Limit: what the operations copy of one JSON patch add to an object in a kustomization.
const maxCopied = 256 << 10

// The library applies JSON patches by a library that has a limit, which is off by default; the API
// server sets it in this way, too.
func init() {
	if limit := jsonpatch.AccumulatedCopySizeLimit; limit <= 0 || limit > maxCopied {
		jsonpatch.AccumulatedCopySizeLimit = maxCopied
	}
}

// maxDepth limits how deep a YAML file may be nested, because the library walks
// it recursively.
//
// Unit: levels
// Limit: the nesting of a YAML file of a kustomization.
const maxDepth = 500

// maxExtents limits how many texts a generator knows the extent of.
const maxExtents = 10_000

// checkBounds refuses a YAML text that is nested too deep, or has aliases that expand to too much:
// the library expands all of them. A text that does not parse is left to the library, which
// explains the mistake. A text is parsed for it once, as most files are the same in every build.
func (t *tree) checkBounds(data []byte, limits Limits) error {
	key := cache.KeyOf(map[string][]byte{"": data})
	extent, known := t.extents.Get(key)
	if !known {
		var err error
		if extent, err = document.ExtentOf(data); err != nil {
			return err
		}
		t.extents.Put(key, extent, 1)
	}
	switch {
	case extent.Depth > maxDepth:
		return &excess.Error{Message: fmt.Sprintf("it is nested deeper than %d levels", maxDepth)}
	case extent.Values > limits.Values:
		return &excess.Error{Message: fmt.Sprintf("its aliases expand to more than %d values", limits.Values)}
	case int64(extent.Bytes) > max(limits.TotalBytes, 4*int64(len(data))):
		return &excess.Error{Message: fmt.Sprintf("its aliases expand to more than %d bytes", limits.TotalBytes)}
	}
	return nil
}

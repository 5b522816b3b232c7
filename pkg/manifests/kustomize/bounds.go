// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"

	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
)

// maxDepth limits how deep a YAML file may be nested, because the library walks
// it recursively.
const maxDepth = 500

// maxExtents limits how many texts a generator knows the extent of.
const maxExtents = 10_000

// checkBounds refuses a YAML text that is nested too deep, or whose aliases
// expand to too much: the library expands all of them. What does not parse is
// left to the library, which says why. It returns the size of the expanded text.
// A text is parsed for it once, as most files are the same in every build.
func (t *tree) checkBounds(data []byte, limits Limits) (size int, err error) {
	key := cache.KeyOf(map[string][]byte{"": data})
	extent, known := t.extents.Get(key)
	if !known {
		if extent, err = document.ExtentOf(data); err != nil {
			return 0, err
		}
		t.extents.Put(key, extent, 1)
	}
	switch {
	case extent.Depth > maxDepth:
		return 0, &LimitError{Message: fmt.Sprintf("it is nested deeper than %d levels", maxDepth)}
	case extent.Values > limits.Values:
		return 0, &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d values", limits.Values)}
	case int64(extent.Bytes) > max(limits.TotalBytes, 4*int64(len(data))):
		return 0, &LimitError{Message: fmt.Sprintf("its aliases expand to more than %d bytes", limits.TotalBytes)}
	}
	return max(extent.Bytes, len(data)), nil
}

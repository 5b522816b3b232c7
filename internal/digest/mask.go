// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"strconv"
	"strings"
)

// mask is a tree of the fields that are ignored. The nil mask ignores nothing.
type mask struct {
	whole  bool
	fields map[string]*mask
}

// newMask builds a mask from JSON pointers.
func newMask(pointers []string) *mask {
	if len(pointers) == 0 {
		return nil
	}
	root := &mask{}
	for _, pointer := range pointers {
		at := root
		for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			segment = strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
			if at.fields == nil {
				at.fields = map[string]*mask{}
			}
			if at.fields[segment] == nil {
				at.fields[segment] = &mask{}
			}
			at = at.fields[segment]
		}
		at.whole = true
	}
	return root
}

// below returns the mask of a field.
func (m *mask) below(field string) *mask {
	if m == nil || m.whole {
		return m
	}
	return m.fields[field]
}

// element returns the mask of an element of a list.
func (m *mask) element(position int) *mask {
	if m == nil || m.whole {
		return m
	}
	return m.fields[strconv.Itoa(position)]
}

// all tells whether everything here is ignored.
func (m *mask) all() bool { return m != nil && m.whole }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import "github.com/corbel-run/corbel/pkg/manifests/internal/files"

// TemplateLimits keep one rendering of templates from taking all memory or all stack. To exceed a limit is an
// error. A limit that is not greater than 0 has its default.
type TemplateLimits struct {
	// Depth limits how deep templates may call each other, with include, template and tpl; at most 1,000.
	//
	// Default: 512
	// Unit: calls
	Depth int
	// OutputBytes limits all output together.
	//
	// Unit: bytes
	// Default: 32 MiB
	OutputBytes int64
	// StringBytes limits each text that a function takes or returns.
	//
	// Default: 16 MiB
	// Unit: bytes
	StringBytes int64
	// Items limits the length of each list and map that a function returns.
	//
	// Default: 100,000
	// Unit: elements
	Items int
	// WorkBytes limits the work of functions and loops: their results, a part of their input, and a price for each
	// call and round of a loop.
	//
	// Default: 512 MiB
	// Unit: bytes
	WorkBytes int64
}

// maxDepth is as far as the stack of a goroutine reaches safely, given how deep a
// template may be nested.
//
// Unit: calls
// Limit: the option TemplateLimits.Depth; a greater value counts as this.
const maxDepth = 1000

// WithDefaults fills in the defaults.
func (l TemplateLimits) WithDefaults() TemplateLimits {
	return TemplateLimits{
		Depth:       min(files.PositiveOr(l.Depth, 512), maxDepth),
		OutputBytes: files.PositiveOr(l.OutputBytes, 32<<20),
		StringBytes: files.PositiveOr(l.StringBytes, 16<<20),
		Items:       files.PositiveOr(l.Items, 100_000),
		WorkBytes:   files.PositiveOr(l.WorkBytes, 512<<20),
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import "github.com/corbel-run/corbel/pkg/manifests/internal/files"

// TemplateLimits keep the templates of one rendering, or the values that they are given, from
// taking all memory or all stack. To exceed one is an error. A limit that is not greater than 0 has
// its default.
//
// Other limits are fixed. The text of a template, also one for the function tpl, has at most 16
// MiB, 100,000 actions and 100,000 parentheses, and is nested at most 120 levels deep. A printed
// value, or a value that a function walks, is nested at most 1,000 levels deep. A regular
// expression has at most 16 KiB, an argument of a method 64 KiB, a pattern of Files.Glob 1 KiB, and
// lookup lists at most 10,000 objects.
type TemplateLimits struct {
	// Depth limits how deep templates may call each other, with include, template and tpl; at most
	// 1,000.
	//
	// Unit: calls
	// Default: 512
	Depth int
	// OutputBytes limits all output together.
	//
	// Unit: bytes
	// Default: 32 MiB
	OutputBytes int64
	// StringBytes limits each text that a function takes or returns, and the text that a value would
	// be written as.
	//
	// Unit: bytes
	// Default: 16 MiB
	StringBytes int64
	// Items limits the length of each list and map that a function returns, such as the list of
	// until.
	//
	// Unit: elements
	// Default: 100,000
	Items int
	// WorkBytes limits the work of functions and loops together. It counts all that functions and
	// methods return, a sixteenth of what they read, and 64 bytes for each call of a function and
	// each round of a loop. Slow functions count more: 4 MiB for each key, certificate or slow hash,
	// 512 bytes for each random character, and 256 bytes for each node that a text for tpl is parsed
	// to.
	//
	// Unit: bytes
	// Default: 512 MiB
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import "github.com/corbel-run/corbel/internal/digest"

// Digester is a generator that can tell, without rendering, what it renders from. When
// an operator comes with something else, such as the next version of a chart, that is a
// new revision of every component, as if its spec had changed.
type Digester interface {
	// Digest is the same as long as the generator is made of the same content.
	Digest() string
}

// Digest returns the digest of a generator; it is empty if the generator has none.
// Those of Join, Transform and Isolated have that of the generators they are made
// from, and transformers count for nothing.
func Digest(g Generator) string {
	if isNil(g) {
		return ""
	}
	sum := ""
	if digester, ok := g.(Digester); ok {
		if err := protect(func() error { sum = digester.Digest(); return nil }); err != nil {
			return ""
		}
	}
	return sum
}

// Digest implements Digester.
func (j joined) Digest() string {
	parts, known := make([]string, len(j)), false
	for i, g := range j {
		parts[i] = Digest(g)
		known = known || parts[i] != ""
	}
	if !known {
		return ""
	}
	return digest.Combine(parts...)
}

// Digest implements Digester.
func (t *transformed) Digest() string { return Digest(t.generator) }

// Digest implements Digester.
func (i *isolated) Digest() string { return Digest(i.generator) }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
)

// WithDigest gives a generator a digest that counts beside its own. It is for Go code: a generator, or functions
// among the options of one. It has to be another text when the code renders something else.
func WithDigest(g Generator, digest string) Generator {
	return &transformed{generator: g, digest: digest}
}

// WithDigest gives a transformer a digest, as the function of this name gives one to a generator.
func (t Transformer) WithDigest(digest string) Transformer {
	t.digest = digest
	return t
}

func (t Transformer) sum() string {
	return combined(t.digest, renders.Digest(t.parameters), renders.Digest(t.objects))
}

// combined is empty if all digests are.
func combined(sums ...string) string {
	if strings.Join(sums, "") == "" {
		return ""
	}
	return digest.Combine(sums...)
}

// Digest combines the digests of all generators. Before its first plus, a digest equals the digest of an earlier
// build: of charts, without their options.
func (j joined) Digest() string {
	var before, all []string
	for _, g := range j {
		sum := renders.Digest(g)
		all = append(all, sum)
		earlier, _, _ := strings.Cut(sum, "+")
		before = append(before, earlier)
	}
	if slices.Equal(before, all) {
		return combined(all...)
	}
	return combined(before...) + "+" + combined(all...)
}

// Digest combines the digests of the generator and the transformers.
func (t *transformed) Digest() string {
	sums := []string{t.digest}
	for _, transformer := range t.transformers {
		sums = append(sums, transformer.sum())
	}
	if of := combined(sums...); of != "" {
		return renders.Digest(t.generator) + "+" + of
	}
	return renders.Digest(t.generator)
}

// LacksDigest reports whether a generator lacks one.
func (j joined) LacksDigest() bool {
	return slices.ContainsFunc(j, func(g Generator) bool { return renders.LacksDigest(g) })
}

// LacksDigest reports whether the generator or a transformer lacks one, unless the author gave one to all of them.
func (t *transformed) LacksDigest() bool {
	lacks := func(t Transformer) bool { return t.sum() == "" }
	return t.digest == "" && (renders.LacksDigest(t.generator) || slices.ContainsFunc(t.transformers, lacks))
}

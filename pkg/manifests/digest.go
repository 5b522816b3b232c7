// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"slices"
	"strings"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/guard"
)

// Digester is a generator or a transformer that reports a digest of its sources: files and options.
// With another digest, an operator starts a new revision of each component for which it renders
// something else.
type Digester interface {
	// Digest returns a short text. It is the same in each process as long as files and options are; Go functions among the
	// options count only by being there. The status of components has it, so no secret may follow from it.
	Digest() string
}

// Digest returns the digest of a generator; it is empty if the generator has none. Join and
// Transform have one digest for all their generators and transformers that have one, and Isolated
// has the digest of its generator.
func Digest(g Generator) string { return digestOf(g) }

func digestOf(v any) (sum string) {
	digester, ok := v.(Digester)
	if !ok || isNil(v) || guard.Call(func() error { sum = digester.Digest(); return nil }) != nil {
		return ""
	}
	return sum
}

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
	return combined(t.digest, digestOf(t.parameters), digestOf(t.objects))
}

// combined is empty if all digests are.
func combined(sums ...string) string {
	if strings.Join(sums, "") == "" {
		return ""
	}
	return digest.Combine(sums...)
}

// Digest implements Digester. Before its first plus, a digest equals the digest of an earlier
// build: of charts, without their options.
func (j joined) Digest() string {
	var before, all []string
	for _, g := range j {
		sum := Digest(g)
		all = append(all, sum)
		earlier, _, _ := strings.Cut(sum, "+")
		before = append(before, earlier)
	}
	if slices.Equal(before, all) {
		return combined(all...)
	}
	return combined(before...) + "+" + combined(all...)
}

// Digest implements Digester.
func (t *transformed) Digest() string {
	sums := []string{t.digest}
	for _, transformer := range t.transformers {
		sums = append(sums, transformer.sum())
	}
	if of := combined(sums...); of != "" {
		return Digest(t.generator) + "+" + of
	}
	return Digest(t.generator)
}

// LacksDigest reports whether a generator, or a part of it that is no option, has no digest.
func LacksDigest(g Generator) bool {
	switch g := g.(type) {
	case joined:
		return slices.ContainsFunc(g, LacksDigest)
	case *isolated:
		return LacksDigest(g.generator)
	case *transformed:
		lacks := func(t Transformer) bool { return t.sum() == "" }
		return g.digest == "" && (LacksDigest(g.generator) || slices.ContainsFunc(g.transformers, lacks))
	}
	return Digest(g) == ""
}

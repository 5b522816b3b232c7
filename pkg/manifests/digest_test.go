// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// dated is a generator that knows what it renders from.
type dated struct {
	manifests.GeneratorFunc
	digest string
}

func (d dated) Digest() string {
	if d.digest == "panic" {
		panic("no digest")
	}
	return d.digest
}

func TestTheDigestOfACompositionIsThatOfItsGenerators(t *testing.T) {
	plain, a, b := serving("x"), dated{digest: "a"}, dated{digest: "b"}
	for name, test := range map[string]struct {
		one, other manifests.Generator
		same       bool
	}{
		"itself":             {manifests.Join(plain, a), manifests.Join(plain, a), true},
		"another content":    {manifests.Join(plain, a), manifests.Join(plain, b), false},
		"another place":      {manifests.Join(a, b), manifests.Join(b, a), false},
		"nothing and nil":    {plain, nil, true},
		"nothing in nothing": {manifests.Join(plain, plain), manifests.Transform(plain), true},
		"transformers":       {manifests.Transform(a, suffixing("x")), a, true},
		"isolation":          {manifests.Isolated(a, manifests.Isolation{Name: "dated"}), a, true},
		"a panic":            {dated{digest: "panic"}, plain, true},
	} {
		one, other := manifests.Digest(test.one), manifests.Digest(test.other)
		if (one == other) != test.same {
			t.Errorf("%s: got %q and %q", name, one, other)
		}
	}
}

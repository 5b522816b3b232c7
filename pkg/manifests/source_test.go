// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// versioned is a generator that reports what it renders from.
type versioned struct {
	manifests.GeneratorFunc
	version string
}

func (v versioned) Source() v1alpha1.Source {
	if v.version == "panic" {
		panic("no source")
	}
	return v1alpha1.Source{Generator: "test", Version: v.version}
}

func TestSource(t *testing.T) {
	plain, one, two := serving("x"), versioned{version: "1"}, versioned{version: "2"}
	files, err := manifests.FromFS(fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n")}}, ".")
	if err != nil {
		t.Fatal(err)
	}
	of := func(version string) v1alpha1.Source { return v1alpha1.Source{Generator: "test", Version: version} }
	for name, test := range map[string]struct {
		generator manifests.Generator
		want      v1alpha1.Source
	}{
		"itself":             {one, of("1")},
		"nil":                {nil, v1alpha1.Source{}},
		"a function":         {plain, v1alpha1.Source{}},
		"files":              {files, v1alpha1.Source{Generator: "files"}},
		"the first of more":  {manifests.Join(plain, one, two), of("1")},
		"none of more":       {manifests.Join(plain, plain), v1alpha1.Source{}},
		"transformed":        {manifests.Transform(one, suffixing("x")), of("1")},
		"isolated":           {manifests.Isolated(one, manifests.Isolation{Name: "versioned"}), of("1")},
		"a panic":            {versioned{version: "panic"}, v1alpha1.Source{}},
		"a panic among more": {manifests.Join(versioned{version: "panic"}, two), of("2")},
	} {
		if got := renders.Source(test.generator); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

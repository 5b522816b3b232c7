// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// sources are the templates that hold an object, by its kind and then by the name
// that it has there. The library forgets where objects come from.
type sources map[string]map[string][]string

// sourcesOf reads rendered templates. Those that hold no objects count for nothing.
func sourcesOf(texts map[string]string) sources {
	all := sources{}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		objects, err := manifests.Decode(file, []byte(texts[file]))
		if err != nil {
			continue
		}
		for _, object := range objects {
			kind := object.GroupVersionKind().GroupKind().String()
			if all[kind] == nil {
				all[kind] = map[string][]string{}
			}
			all[kind][object.GetName()] = append(all[kind][object.GetName()], file)
		}
	}
	return all
}

// of returns the templates that an object was made of, patches among them; it is
// empty if none is known. A kustomization may put something before and after a
// name, so among several names that fit the longest counts.
func (s sources) of(object *unstructured.Unstructured) string {
	best := ""
	named := s[object.GroupVersionKind().GroupKind().String()]
	for _, name := range slices.Sorted(maps.Keys(named)) {
		if len(name) > len(best) && holdsName(object.GetName(), name) {
			best = name
		}
	}
	return strings.Join(slices.Compact(named[best]), ", ")
}

// holdsName tells whether a name is another one, or that with something before or
// after it.
func holdsName(whole, part string) bool {
	return part != "" && strings.Contains("-"+whole+"-", "-"+part+"-")
}

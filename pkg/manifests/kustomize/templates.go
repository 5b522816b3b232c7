// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
)

// parseTemplates parses the files that are templates; there may be none.
func parseTemplates(t *tree, folder string, ignored ignoreRules, ignoreFile string, o *Templates) (*gotemplate.Texts, error) {
	sources := map[string]string{}
	for name, data := range t.files {
		if name == ignoreFile || !strings.HasSuffix(name, o.Suffix) || ignored.ignores(name) || !utf8.Valid(data) {
			continue
		}
		sources[name] = string(data)
	}
	options := o.Options
	options.Functions = maps.Clone(options.Functions)
	if options.Functions == nil {
		options.Functions = template.FuncMap{}
	}
	for name, function := range t.functions() {
		if _, taken := options.Functions[name]; !taken {
			options.Functions[name] = function
		}
	}
	return gotemplate.NewTexts(folder, sources, options)
}

// functions let templates see files as they are before rendering.
func (t *tree) functions() template.FuncMap {
	clean := func(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
	return template.FuncMap{
		"readFile": func(name string) (string, error) {
			data, ok := t.files[clean(name)]
			if !ok {
				return "", fmt.Errorf("there is no file %q below the root", shorten(name))
			}
			return string(data), nil
		},
		"existsFile": func(name string) bool {
			_, ok := t.files[clean(name)]
			return ok
		},
		"listFiles": func(pattern string) ([]string, error) {
			names := []string{}
			for _, name := range slices.Sorted(maps.Keys(t.files)) {
				ok, err := path.Match(pattern, name)
				if err != nil {
					return nil, fmt.Errorf("pattern %q: %w", shorten(pattern), err)
				}
				if ok {
					names = append(names, name)
				}
			}
			return names, nil
		},
	}
}

// rendered returns the tree with the output of the templates in place of them.
func (t *tree) rendered(texts map[string]string, o *Templates) *tree {
	contents := make(map[string][]byte, len(texts))
	for name, text := range texts {
		if o.TrimSuffix && o.Suffix != "" {
			name = strings.TrimSuffix(name, o.Suffix)
		}
		contents[name] = []byte(text)
	}
	return t.with(contents)
}

// sources are the templates that hold an object, by its kind and then by the name
// that it has there. The library does not keep where objects come from.
type sources map[string]map[string][]string

// sourcesOf reads rendered templates. Templates without objects count for nothing.
func sourcesOf(texts map[string]string) sources {
	all := sources{}
	for _, file := range slices.Sorted(maps.Keys(texts)) {
		objects, err := document.Decode(file, []byte(texts[file]))
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

// holdsName reports whether a name is another one, or that with something before or
// after it.
func holdsName(whole, part string) bool {
	return part != "" && strings.Contains("-"+whole+"-", "-"+part+"-")
}

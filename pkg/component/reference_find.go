// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
)

// found is a reference, or a duration, in a spec.
type found struct {
	path string            // in the serialised form, such as "spec.backup.secretRef"
	tag  reflect.StructTag // of the field that it is in
	// pointer is a loadable, a Reference or a *types.Duration.
	pointer any
}

// fallbackKeys are the keys to try if the reference names none.
func (f found) fallbackKeys() []string {
	var keys []string
	for key := range strings.SplitSeq(f.tag.Get(fallbackKeysTag), ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// ignoredByDigest tells whether what is loaded is not part of the digest.
func (f found) ignoredByDigest() bool { return f.tag.Get(digestTag) == ignoreInDigest }

// waitOnDeletion tells whether the deletion of the component waits for it.
func (f found) waitOnDeletion() bool { return f.tag.Get(notFoundPolicyTag) == waitOnDeletion }

// finder finds the references in specs. It is safe for concurrent use.
type finder struct {
	// custom is the interface of references that are not of this package.
	custom reflect.Type
	holds  sync.Map // reflect.Type to bool: whether values may hold references
}

func finderFor[T Component]() *finder { return &finder{custom: reflect.TypeFor[Reference[T]]()} }

// maxSpecDepth bounds how deep a spec is searched: a value can hold itself.
const maxSpecDepth = 100

// find returns the references and durations in the spec, in the order of their paths. Since values
// of a map cannot be changed in place, the function that it returns has to be called
// after they were loaded.
func (f *finder) find(spec any) (references []found, keep func()) {
	s := &search{finder: f}
	s.value(reflect.ValueOf(spec), "spec", "", 0)
	slices.SortStableFunc(s.references, func(a, b found) int { return cmp.Compare(a.path, b.path) })
	return s.references, func() {
		for _, put := range s.keep {
			put()
		}
	}
}

// search is one walk through a spec.
type search struct {
	*finder
	references []found
	keep       []func()
}

func (s *search) value(v reflect.Value, path string, tag reflect.StructTag, depth int) {
	if !v.IsValid() || depth > maxSpecDepth || !s.mayHold(v.Type()) {
		return
	}
	if v.CanAddr() && v.Addr().CanInterface() && s.isWanted(v.Type()) {
		s.references = append(s.references, found{path: path, tag: tag, pointer: v.Addr().Interface()})
		return
	}
	depth++
	switch v.Kind() {
	case reflect.Pointer:
		s.value(v.Elem(), path, tag, depth)
	case reflect.Interface:
		s.boxed(v, path, tag, depth)
	case reflect.Struct:
		s.fields(v, path, depth)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), tag, depth)
		}
	case reflect.Map:
		s.entries(v, path, tag, depth)
	}
}

// fields searches a struct. Those of an embedded one belong to the outer one, as
// they do when it is serialised.
func (s *search) fields(v reflect.Value, path string, depth int) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, serialised := jsonName(field)
		if !serialised {
			continue
		}
		inner := path
		if name != "" {
			inner += "." + name
		}
		s.value(v.Field(i), inner, field.Tag, depth)
	}
}

// entries searches a map. Each value is copied to where it can be changed.
func (s *search) entries(v reflect.Value, path string, tag reflect.StructTag, depth int) {
	for _, key := range v.MapKeys() {
		entry := v.MapIndex(key)
		inner := fmt.Sprintf("%s[%v]", path, key)
		if entry.Kind() == reflect.Pointer {
			s.value(entry, inner, tag, depth)
			continue
		}
		before := len(s.references)
		changeable := reflect.New(entry.Type()).Elem()
		changeable.Set(entry)
		s.value(changeable, inner, tag, depth)
		if len(s.references) > before {
			s.keep = append(s.keep, func() { v.SetMapIndex(key, changeable) })
		}
	}
}

// boxed searches what is in an interface.
func (s *search) boxed(v reflect.Value, path string, tag reflect.StructTag, depth int) {
	inside := v.Elem()
	if !inside.IsValid() || inside.Kind() == reflect.Pointer || !s.mayHold(inside.Type()) {
		s.value(inside, path, tag, depth)
		return
	}
	before := len(s.references)
	changeable := reflect.New(inside.Type()).Elem()
	changeable.Set(inside)
	s.value(changeable, path, tag, depth)
	if len(s.references) > before && v.CanSet() {
		s.keep = append(s.keep, func() { v.Set(changeable) })
	}
}

// jsonName returns the name of a field in the serialised form; it is empty for one
// whose content is inlined.
func jsonName(field reflect.StructField) (name string, serialised bool) {
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	// The exported fields of an embedded struct are there although its type is not exported.
	hidden := !field.IsExported() && !(field.Anonymous && structOf(field.Type).Kind() == reflect.Struct)
	inlined := field.Anonymous && name == "" || slices.Contains(strings.Split(options, ","), "inline")
	switch {
	case tag == "-", hidden:
		return "", false
	case inlined:
		return "", true
	}
	return cmp.Or(name, field.Name), true
}

// structOf returns what a pointer points to.
func structOf(t reflect.Type) reflect.Type {
	if t.Kind() == reflect.Pointer {
		return t.Elem()
	}
	return t
}

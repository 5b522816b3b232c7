// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package references finds the references in the spec of a component, and loads the
// ConfigMaps and Secrets that they name, and the inputs of requirements.
//
// A [Finder] walks through a spec by reflection. [Load] reads each object once, with the identity
// of the operator and past all caches, and hands its content to the references. An absent object is
// reported as an [Absence]: a component waits for the objects of its references that do not exist,
// and a request that fails is an error.
//
// The types of references belong to pkg/component. A [Source] describes a value of such a type.
package references

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/pkg/types"
)

// Tags of the field that holds a reference, or a slice or map of them. Package component documents
// them.
const (
	fallbackKeysTag   = "fallbackKeys"
	notFoundPolicyTag = "notFoundPolicy"
	digestTag         = "digest"

	ignoreOnDeletion = "ignoreOnDeletion"
	waitOnDeletion   = "waitOnDeletion"
	ignoreInDigest   = "ignore"
)

// Found is a reference, or a duration, in a spec.
type Found struct {
	// Path is where it is in the serialised form, such as "spec.backup.secretRef".
	Path string
	// Pointer points to the value in the spec: a reference of pkg/component, a custom
	// reference, or a types.Duration.
	Pointer any

	tag    reflect.StructTag // of the field that it is in
	source *Source           // nil: it is no reference of pkg/component
}

// FallbackKeys are the keys to try if the reference names none.
func (f Found) FallbackKeys() []string {
	var keys []string
	for key := range strings.SplitSeq(f.tag.Get(fallbackKeysTag), ",") {
		if key = strings.TrimSpace(key); key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// IgnoredByDigest reports whether the loaded content is not part of the digest of the component.
func (f Found) IgnoredByDigest() bool { return f.tag.Get(digestTag) == ignoreInDigest }

// WaitOnDeletion reports whether the deletion of the component waits for the loaded object.
func (f Found) WaitOnDeletion() bool { return f.tag.Get(notFoundPolicyTag) == waitOnDeletion }

// Finder finds the references in specs. It is safe for concurrent use.
type Finder struct {
	// Types are the types of the references of pkg/component. They are recognised by their
	// very type: a struct that embeds one has its methods, too.
	Types []reflect.Type
	// Source describes a value of one of the Types, by a pointer to it.
	Source func(pointer any) *Source
	// Custom is the interface that pointers to all other references implement.
	Custom reflect.Type

	holds sync.Map // reflect.Type to bool: whether values may hold references
}

// Find returns the references and durations in the spec, in the order of their paths. Values
// of a map cannot be changed in place, so call keep after the references were loaded.
func (f *Finder) Find(spec any) (references []Found, keep func()) {
	s := &search{Finder: f}
	s.value(reflect.ValueOf(spec), "spec", "")
	slices.SortStableFunc(s.references, func(a, b Found) int { return cmp.Compare(a.Path, b.Path) })
	return s.references, func() {
		for _, put := range s.keep {
			put()
		}
	}
}

// search is one walk through a spec.
type search struct {
	*Finder
	references []Found
	keep       []func()
}

func (s *search) value(v reflect.Value, path string, tag reflect.StructTag) {
	if !v.IsValid() || !s.mayHold(v.Type()) {
		return
	}
	if v.CanAddr() && v.Addr().CanInterface() && s.isWanted(v.Type()) {
		reference := Found{Path: path, Pointer: v.Addr().Interface(), tag: tag}
		if slices.Contains(s.Types, v.Type()) {
			reference.source = s.Source(reference.Pointer)
		}
		s.references = append(s.references, reference)
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		s.value(v.Elem(), path, tag)
	case reflect.Struct:
		s.fields(v, path)
	case reflect.Slice, reflect.Array:
		for i := range v.Len() {
			s.value(v.Index(i), fmt.Sprintf("%s[%d]", path, i), tag)
		}
	case reflect.Map:
		s.entries(v, path, tag)
	}
}

// fields searches a struct. Fields of an embedded struct belong to the outer one, as they do when
// it is serialised.
func (s *search) fields(v reflect.Value, path string) {
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
		s.value(v.Field(i), inner, field.Tag)
	}
}

// entries searches copies of the entries of a map. If one has references, keep puts the copy in its place.
func (s *search) entries(v reflect.Value, path string, tag reflect.StructTag) {
	for _, key := range v.MapKeys() {
		before, entry := len(s.references), reflect.New(v.Type().Elem()).Elem()
		entry.Set(v.MapIndex(key))
		s.value(entry, fmt.Sprintf("%s[%v]", path, key), tag)
		if len(s.references) > before {
			s.keep = append(s.keep, func() { v.SetMapIndex(key, entry) })
		}
	}
}

// jsonName returns the name of a field in the serialised form; it is empty if the
// content of the field is inlined.
func jsonName(field reflect.StructField) (name string, serialised bool) {
	tag := field.Tag.Get("json")
	name, options, _ := strings.Cut(tag, ",")
	// The exported fields of an embedded struct are there although its type is not exported.
	embedded := field.Type
	if embedded.Kind() == reflect.Pointer {
		embedded = embedded.Elem()
	}
	hidden := !field.IsExported() && !(field.Anonymous && embedded.Kind() == reflect.Struct)
	inlined := field.Anonymous && name == "" || slices.Contains(strings.Split(options, ","), "inline")
	switch {
	case tag == "-", hidden:
		return "", false
	case inlined:
		return "", true
	}
	return cmp.Or(name, field.Name), true
}

// isReference reports whether pointers to values of the type are references.
func (f *Finder) isReference(t reflect.Type) bool {
	return slices.Contains(f.Types, t) || t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(f.Custom)
}

// durationType is looked for as well: a duration may have been decoded from another value.
var durationType = reflect.TypeFor[types.Duration]()

// isWanted reports whether a search returns values of the type.
func (f *Finder) isWanted(t reflect.Type) bool { return t == durationType || f.isReference(t) }

// mayHold reports whether values of the type can hold a reference or a duration, so that large
// parts of a spec need not be looked at.
func (f *Finder) mayHold(t reflect.Type) bool {
	if known, ok := f.holds.Load(t); ok {
		return known.(bool)
	}
	holds := false
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, _ *reflect.StructField) {
		holds = holds || f.isWanted(inner)
	})
	f.holds.Store(t, holds)
	return holds
}

// visit calls see for every type that values of a type can hold, and the field that
// holds it, if it is one.
func (f *Finder) visit(t reflect.Type, seen map[reflect.Type]bool, see func(reflect.Type, *reflect.StructField)) {
	if seen[t] {
		return
	}
	seen[t] = true
	see(t, nil)
	if f.isWanted(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		f.visit(t.Elem(), seen, see)
	case reflect.Struct:
		for i := range t.NumField() {
			field := t.Field(i)
			if _, serialised := jsonName(field); serialised {
				see(field.Type, &field)
				f.visit(field.Type, seen, see)
			}
		}
	}
}

// Check returns the mistakes in the Go type of a spec.
func (f *Finder) Check(spec any) error {
	t := reflect.TypeOf(spec)
	var mistakes []error
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, field *reflect.StructField) {
		if t.Kind() == reflect.Struct && f.isReference(inner) && len(mistakes) == 0 {
			mistakes = append(mistakes, fmt.Errorf("GetSpec must return a pointer, because the spec can hold a %s", inner))
		}
		if field == nil {
			return
		}
		if inner.Kind() == reflect.Interface && inner.NumMethod() > 0 {
			mistakes = append(mistakes, fmt.Errorf("field %s of the spec is the interface %s: references are not found in interfaces", field.Name, inner))
		}
		switch policy := field.Tag.Get(notFoundPolicyTag); policy {
		case "", ignoreOnDeletion, waitOnDeletion:
		default:
			mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s is %q, must be %s or %s",
				field.Name, notFoundPolicyTag, policy, ignoreOnDeletion, waitOnDeletion))
		}
		if value := field.Tag.Get(digestTag); value != "" && value != ignoreInDigest {
			mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s is %q, must be %s", field.Name, digestTag, value, ignoreInDigest))
		}
		for _, key := range (Found{tag: field.Tag}).FallbackKeys() {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s has the key %q: %s",
					field.Name, fallbackKeysTag, key, strings.Join(problems, ", ")))
			}
		}
	})
	return errors.Join(mistakes...)
}

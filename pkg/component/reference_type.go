// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/corbel-run/corbel/pkg/types"
)

// loadables are the references of this package. They are recognised by their very
// type: a struct that embeds one has its methods, too.
var loadables = []reflect.Type{
	reflect.TypeFor[ConfigMapReference](), reflect.TypeFor[ConfigMapKeyReference](),
	reflect.TypeFor[SecretReference](), reflect.TypeFor[SecretKeyReference](),
}

func isLoadable(t reflect.Type) bool {
	for _, known := range loadables {
		if t == known {
			return true
		}
	}
	return false
}

// isReference tells whether pointers to values of the type are references.
func (f *finder) isReference(t reflect.Type) bool {
	return isLoadable(t) || t.Kind() != reflect.Interface && t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(f.custom)
}

// durationType is looked for as well: a duration may have been decoded from what is none.
var durationType = reflect.TypeFor[types.Duration]()

// isWanted tells whether values of the type are what a search is for.
func (f *finder) isWanted(t reflect.Type) bool { return t == durationType || f.isReference(t) }

// mayHold tells whether values of the type can hold what is wanted, so that large
// parts of a spec need not be looked at.
func (f *finder) mayHold(t reflect.Type) bool {
	if known, ok := f.holds.Load(t); ok {
		return known.(bool)
	}
	holds := false
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, _ *reflect.StructField) {
		holds = holds || inner.Kind() == reflect.Interface || f.isWanted(inner)
	})
	f.holds.Store(t, holds)
	return holds
}

// visit calls see for every type that values of a type can hold, and the field that
// holds it, if it is one.
func (f *finder) visit(t reflect.Type, seen map[reflect.Type]bool, see func(reflect.Type, *reflect.StructField)) {
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

// check reports the mistakes of the author of the type of the spec.
func (f *finder) check(spec any) error {
	t := reflect.TypeOf(spec)
	var mistakes []error
	f.visit(t, map[reflect.Type]bool{}, func(inner reflect.Type, field *reflect.StructField) {
		if t.Kind() == reflect.Struct && f.isReference(inner) && len(mistakes) == 0 {
			mistakes = append(mistakes, fmt.Errorf("GetSpec must return a pointer, because the spec can hold a %s", inner))
		}
		if field == nil {
			return
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
		for _, key := range (found{tag: field.Tag}).fallbackKeys() {
			if problems := validation.IsConfigMapKey(key); len(problems) > 0 {
				mistakes = append(mistakes, fmt.Errorf("field %s of the spec: tag %s has the key %q: %s",
					field.Name, fallbackKeysTag, key, strings.Join(problems, ", ")))
			}
		}
	})
	return errors.Join(mistakes...)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifeststest

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"testing"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
)

// Digest checks the contract of the method Digest of a manifests.Generator. The first function makes the generator anew
// each time that it is called: the digest is always the same, and is not empty. Each of the other
// functions makes a generator with another content, option or transformer: no two of them have the
// same digest.
func Digest(t testing.TB, same func() manifests.Generator, others map[string]func() manifests.Generator) {
	t.Helper()
	first := same()
	if renders.LacksDigest(first) {
		t.Errorf("the generator, or a part of it, has no digest")
	}
	seen := map[string]string{renders.Digest(first): "the generator"}
	if again := renders.Digest(same()); again != renders.Digest(first) {
		t.Errorf("a generator that is made in the same way has another digest: %q and %q", renders.Digest(first), again)
	}
	for _, name := range slices.Sorted(maps.Keys(others)) {
		sum := renders.Digest(others[name]())
		if other, known := seen[sum]; known {
			t.Errorf("%s has the digest of %s: %q", name, other, sum)
		}
		seen[sum] = name
	}
}

// EachOption returns the options with another value in one of their fields at a time, by the name of the field, such as
// "Limits.WorkBytes". The values are for fields that no value can be made up for. It fails the test if there is none.
func EachOption[O any](t testing.TB, options O, values map[string]any) map[string]O {
	t.Helper()
	changed := map[string]O{}
	var each func(path string, index []int, of reflect.Type)
	each = func(path string, index []int, of reflect.Type) {
		for i := range of.NumField() {
			field := of.Field(i)
			name, at := path+field.Name, append(slices.Clone(index), i)
			value, given := values[name]
			switch {
			case !field.IsExported():
				continue
			case field.Type.Kind() == reflect.Struct && !given:
				each(name+".", at, field.Type)
				continue
			}
			other := options
			target := reflect.ValueOf(&other).Elem().FieldByIndex(at)
			if given {
				target.Set(reflect.ValueOf(value))
			} else if err := change(target); err != nil {
				t.Fatalf("option %s: %v; name a value for it", name, err)
			}
			changed[name] = other
		}
	}
	each("", nil, reflect.TypeFor[O]())
	return changed
}

// change gives a field another value.
func change(field reflect.Value) error {
	switch field.Kind() {
	case reflect.Bool:
		field.SetBool(!field.Bool())
	case reflect.String:
		field.SetString(field.String() + "x")
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		field.SetInt(field.Int() + 1)
	case reflect.Func:
		field.Set(reflect.MakeFunc(field.Type(), func([]reflect.Value) []reflect.Value { return nil }))
	case reflect.Slice:
		element := reflect.New(field.Type().Elem()).Elem()
		if err := change(element); err != nil {
			return err
		}
		field.Set(reflect.Append(field, element))
	default:
		return fmt.Errorf("no other value is known for the type %s", field.Type())
	}
	return nil
}

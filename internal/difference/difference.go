// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package difference

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
)

// Place is one place where two renderings differ.
type Place struct {
	// Object is a description of the object: "Kind namespace/name".
	Object string
	// Source is the object, as one of the renderings has it.
	Source client.Object
	// Path leads to the field, such as spec.ports[0].port. It is empty if one of the
	// renderings does not have the object at all.
	Path string
}

// String describes the difference.
func (p Place) String() string {
	if p.Path == "" {
		return p.Object + " is only in one of them"
	}
	return p.Object + " differs in " + p.Path
}

// Between returns the places where two renderings of untyped objects differ, at most as many as the
// limit. The order of the objects means nothing. Objects that cannot be serialised
// are equal to each other.
func Between(first, second []client.Object, limit int) []Place {
	c := comparison{limit: limit}
	others := map[string]content{}
	for i, object := range second {
		others[unused(others, identify(object))] = content{index: i, value: read(object)}
	}
	seen := map[string]content{}
	for _, object := range first {
		id := unused(seen, identify(object))
		seen[id] = content{}
		other, found := others[id]
		delete(others, id)
		c.place = Place{Object: describe(object), Source: object}
		if !found {
			c.add("")
			continue
		}
		c.compare("", read(object), other.value)
	}
	for _, id := range slices.SortedFunc(maps.Keys(others), func(a, b string) int { return others[a].index - others[b].index }) {
		object := second[others[id].index]
		c.place = Place{Object: describe(object), Source: object}
		c.add("")
	}
	return c.places
}

type content struct {
	index int
	value any
}

// unused makes the names of equal ones distinct, by counting.
func unused(taken map[string]content, id string) string {
	for n := 0; ; n++ {
		numbered := id + "#" + strconv.Itoa(n)
		if _, found := taken[numbered]; !found {
			return numbered
		}
	}
}

type comparison struct {
	limit  int
	place  Place
	places []Place
}

func (c *comparison) add(path string) {
	if len(c.places) < c.limit {
		c.place.Path = path
		c.places = append(c.places, c.place)
	}
}

// simple are the keys that need no quotes in a path.
var simple = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]*$`)

func (c *comparison) compare(path string, a, b any) {
	if len(c.places) >= c.limit {
		return
	}
	switch x := a.(type) {
	case map[string]any:
		if y, ok := b.(map[string]any); ok {
			c.maps(path, x, y)
			return
		}
	case []any:
		if y, ok := b.([]any); ok && len(x) == len(y) {
			for i := range x {
				c.compare(fmt.Sprintf("%s[%d]", path, i), x[i], y[i])
			}
			return
		}
	}
	if !reflect.DeepEqual(a, b) {
		c.add(path)
	}
}

func (c *comparison) maps(path string, a, b map[string]any) {
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		inner := path + "[" + strconv.Quote(key) + "]"
		if simple.MatchString(key) {
			if inner = key; path != "" {
				inner = path + "." + key
			}
		}
		x, inA := a[key]
		y, inB := b[key]
		if inA != inB {
			c.add(inner)
			continue
		}
		c.compare(inner, x, y)
	}
}

// read returns the serialised form as maps and lists; nil if the object has none.
func read(object client.Object) (value any) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return nil
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.UseNumber()
	if decoder.Decode(&value) != nil {
		return nil
	}
	return value
}

func identify(object client.Object) string {
	return object.GetObjectKind().GroupVersionKind().String() + " " + describe(object)
}

// describe is the name of an object in messages.
func describe(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().Kind
	return report.Key{Kind: kind, Namespace: object.GetNamespace(), Name: object.GetName()}.String()
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// node is what an entry of the managed fields says about a place: the fields below
// it. If there are none, the entry owns everything there, or nothing but the place
// itself: it is the former unless somebody owns something below.
type node struct {
	entry  int
	fields map[string]any
}

// below follows the entries to a field.
func below(nodes []node, name string) []node {
	return follow(nodes, func(step string) bool { return step == name })
}

// element follows the entries to an element of a list. Where elements have no keys
// the list is owned as a whole.
func element(nodes []node, live map[string]any) []node {
	return follow(nodes, func(step string) bool {
		keys, ok := strings.CutPrefix(step, "k:")
		return ok && matches(keys, live)
	})
}

func follow(nodes []node, leads func(step string) bool) []node {
	var owners, whole []node
	for _, n := range nodes {
		if len(n.fields) == 0 {
			whole = append(whole, n)
		}
		for step, value := range n.fields {
			if leads(step) {
				fields, _ := value.(map[string]any)
				owners = append(owners, node{entry: n.entry, fields: fields})
			}
		}
	}
	if len(owners) == 0 {
		return whole
	}
	return owners
}

func matches(keys string, live map[string]any) bool {
	var wanted map[string]any
	if err := json.Unmarshal([]byte(keys), &wanted); err != nil || len(wanted) == 0 {
		return false
	}
	for key, value := range wanted {
		if !same(live[key], value) {
			return false
		}
	}
	return true
}

// field compares one field of a map, if the manifest sets it.
func (s *search) field(at place, key string, live, wanted map[string]any, nodes []node) {
	if value, there := wanted[key]; there && value != nil {
		s.compare(at.key(key), live[key], value, below(nodes, "f:"+key))
	}
}

// compare looks for differences at and below a place. Missing and empty are the same.
func (s *search) compare(at place, live, wanted any, nodes []node) {
	switch {
	case slices.Contains(s.ignored, at.pointer) || isZero(wanted) && isZero(live):
		return
	case live == nil:
		s.found(at.path, nil) // what does not exist has no owner
		return
	}
	switch wanted := wanted.(type) {
	case map[string]any:
		fields, ok := live.(map[string]any)
		if !ok {
			s.found(at.path, nodes)
			return
		}
		for _, key := range slices.Sorted(maps.Keys(wanted)) {
			s.field(at, key, fields, wanted, nodes)
		}
	case []any:
		s.list(at, live, wanted, nodes)
	default:
		if !same(live, wanted) {
			s.found(at.path, nodes)
		}
	}
}

// list compares elements that have names with their counterparts, and others one by one.
func (s *search) list(at place, live any, wanted []any, nodes []node) {
	elements, _ := live.([]any)
	named := len(wanted) > 0 && !slices.ContainsFunc(wanted, func(e any) bool { return nameOf(e) == "" })
	if !named && len(elements) != len(wanted) {
		s.found(at.path, nodes)
		return
	}
	for i, element := range wanted {
		inner := place{at.path + "[" + strconv.Itoa(i) + "]", at.pointer + "/" + strconv.Itoa(i)}
		var there any
		if named {
			inner.path = at.path + "[name=" + nameOf(element) + "]"
			if j := slices.IndexFunc(elements, func(e any) bool { return nameOf(e) == nameOf(element) }); j >= 0 {
				there = elements[j]
			}
		} else {
			there = elements[i]
		}
		s.compare(inner, there, element, ownersOf(nodes, there))
	}
}

func ownersOf(nodes []node, live any) []node {
	if fields, ok := live.(map[string]any); ok {
		return element(nodes, fields)
	}
	return nodes // of a list of values
}

// nameOf is the name of an element; names are no secrets.
func nameOf(element any) string {
	fields, _ := element.(map[string]any)
	name, _ := fields["name"].(string)
	return name
}

// isZero tells whether a value is as good as none: servers leave it out.
func isZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !isZero(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	default:
		return reflect.ValueOf(value).IsZero()
	}
}

// same tells whether two values are the same, however they are spelled.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) || isZero(a) && isZero(b) {
		return true
	}
	x, okX := quantity(a)
	y, okY := quantity(b)
	return okX && okY && x.Cmp(y) == 0
}

// quantity reads numbers and texts such as "500m".
func quantity(value any) (resource.Quantity, bool) {
	var text string
	switch v := value.(type) {
	case string:
		text = v
	case int64:
		text = strconv.FormatInt(v, 10)
	case float64:
		text = strconv.FormatFloat(v, 'g', -1, 64)
	default:
		return resource.Quantity{}, false
	}
	const long = 40 // no quantity is longer, and only short ones are cheap
	if text == "" || len(text) > long {
		return resource.Quantity{}, false
	}
	q, err := resource.ParseQuantity(text)
	return q, err == nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/binary"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// applied writes the live values at the paths that the manifest sets.
func (e *encoder) applied(live, manifest map[string]any, ignored *mask) {
	e.fields(live, manifest, ignored, func(key string) bool {
		return key == "status" || key == "metadata" || key == "apiVersion" || key == "kind"
	})
	metadata, _ := manifest["metadata"].(map[string]any)
	liveMetadata, _ := live["metadata"].(map[string]any)
	ignored = ignored.below("metadata")
	e.fields(liveMetadata, metadata, ignored, func(key string) bool {
		return serverKept[key] || key == "finalizers" || key == "uid" || key == "generateName"
	})
	if finalizers, ok := metadata["finalizers"].([]any); ok && !ignored.below("finalizers").all() {
		e.set(liveMetadata["finalizers"], finalizers)
	}
}

// fields writes the live values of the keys that the manifest has.
func (e *encoder) fields(live, manifest map[string]any, ignored *mask, skip func(key string) bool) {
	start := len(e.keys)
	for key, value := range manifest {
		if (skip == nil || !skip(key)) && value != nil && !ignored.below(key).all() {
			e.keys = append(e.keys, key)
		}
	}
	end := len(e.keys)
	slices.Sort(e.keys[start:end])
	for i := start; i < end; i++ {
		key := e.keys[i]
		e.text(key)
		value, present := live[key]
		e.at(key, value, present, manifest[key], ignored.below(key))
	}
	e.keys = e.keys[:start]
}

// at writes the live value at a path where the manifest sets something. The key is empty for an
// element of a list.
func (e *encoder) at(key string, live any, present bool, manifest any, ignored *mask) {
	if !present || live == nil {
		live, present = nil, false
	}
	switch value := manifest.(type) {
	case nil:
		// Null asks for nothing; a value that another client puts there is that client's.
	case map[string]any:
		fields, ok := live.(map[string]any)
		if present && !ok {
			e.value(live)
			return
		}
		// Keys of other clients do not count, also in an empty map. That the map is there may
		// matter all the same: it chooses emptyDir among the sources of a volume.
		e.tag(tagFields)
		if e.presence && ignored == nil {
			if !present && ChoosesByPresence(key) {
				e.tag(tagAbsent)
			}
			if SelectsAll(key) && IsZero(manifest) {
				e.value(IsZero(live))
			}
		}
		e.fields(fields, value, ignored, nil)
	case []any:
		e.list(live, value, ignored)
	default:
		if !present {
			e.tag(tagAbsent)
			return
		}
		e.value(live)
	}
}

// indifferent are keys under which an empty map means the same as none. Clients and newer
// versions of servers drop it.
var indifferent = map[string]bool{
	"annotations": true, "labels": true, "matchLabels": true, "nodeSelector": true, "metadata": true,
	"resources": true, "limits": true, "requests": true, "strategy": true, "updateStrategy": true,
}

// ChoosesByPresence reports whether it may matter that a map is there under the key, even if it is empty.
func ChoosesByPresence(key string) bool { return !indifferent[key] }

// SelectsAll reports whether an empty map under the key selects everything, so that a key of
// another client narrows the selection of the manifest. An element of a list has an empty key, and is
// such a map: an empty rule of a NetworkPolicy allows everything.
func SelectsAll(key string) bool {
	return key == "" || key == "matchLabels" || strings.HasSuffix(key, "elector")
}

// IsZero reports whether a value means the same as none: servers leave it out.
func IsZero(value any) bool {
	switch v := value.(type) {
	case nil:
		return true
	case map[string]any:
		for _, inner := range v {
			if !IsZero(inner) {
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

// list writes the live part of a list that the manifest sets.
func (e *encoder) list(live any, desired []any, ignored *mask) {
	elements, ok := live.([]any)
	if !ok && live != nil {
		e.value(live)
		return
	}
	if len(desired) > 0 {
		if by := association(desired); by != nil {
			e.associated(elements, desired, by, ignored)
			return
		}
	}
	// Absent and empty are the same: servers drop empty lists.
	e.tag(tagList)
	e.length(len(elements))
	for i, element := range elements {
		if i >= len(desired) {
			e.value(element)
			continue
		}
		if at := ignored.element(i); !at.all() {
			e.at("", element, true, desired[i], at)
		}
	}
}

// associated writes the live counterpart of every element of the manifest, and in which
// order those stand. Foreign elements before, between and after them do not count.
func (e *encoder) associated(live, desired []any, by *mapKey, ignored *mask) {
	e.tag(tagList)
	positions := by.find(live, desired)
	last := -1
	for i, element := range desired {
		at := ignored.element(i)
		if at.all() {
			continue
		}
		position := positions[i]
		if position < 0 {
			e.tag(tagAbsent)
			continue
		}
		if position < last {
			e.tag(tagOrder)
		}
		last = position
		e.at("", live[position], true, element, at)
	}
}

// set writes which of the strings of the manifest the object has.
func (e *encoder) set(live any, desired []any) {
	elements, _ := live.([]any)
	there := make(map[string]bool, len(elements))
	for _, element := range elements {
		if name, ok := element.(string); ok {
			there[name] = true
		}
	}
	for _, value := range desired {
		if name, ok := value.(string); ok {
			e.text(name)
			e.value(there[name])
		}
	}
}

// mapKey is a field, or two, that distinguishes the elements of a list.
type mapKey struct {
	field string
	// second is another field of the key, with the value that
	// servers use if it is missing.
	second, missing string
}

// mapKeys are tried in this order. They are the keys that the types of
// Kubernetes and most custom resources use; the first that every element of the
// manifest has, each with another value, is the one. Paths of mounts come before
// names: a volume may be mounted once by us and once more by another client.
var mapKeys = []mapKey{
	{field: "mountPath"},
	{field: "devicePath"},
	{field: "name"},
	{field: "key"},
	{field: "containerPort"},
	{field: "containerPort", second: "protocol", missing: "TCP"},
	{field: "port"},
	{field: "port", second: "protocol", missing: "TCP"},
	{field: "ip"},
	{field: "host"},
	{field: "hostname"},
	{field: "path"},
	{field: "uid"},
	{field: "id"},
	{field: "topologyKey"},
	{field: "topologyKey", second: "whenUnsatisfiable", missing: "DoNotSchedule"},
	{field: "type"},
}

// association returns the map key of a list, or nil if it has none.
func association(elements []any) *mapKey {
	for i := range mapKeys {
		if mapKeys[i].distinguishes(elements) {
			return &mapKeys[i]
		}
	}
	return nil
}

// few is up to how many elements comparing each with each beats a map.
const few = 8

// distinguishes reports whether every element has the key, each with another value.
func (by *mapKey) distinguishes(elements []any) bool {
	var buffer [few]string
	names := buffer[:0]
	var seen map[string]bool
	if len(elements) > few {
		seen = make(map[string]bool, len(elements))
	}
	for _, element := range elements {
		name, ok := by.valueIn(element)
		if !ok || seen[name] {
			return false
		}
		if seen != nil {
			seen[name] = true
			continue
		}
		for _, other := range names {
			if name == other {
				return false
			}
		}
		names = append(names, name)
	}
	return true
}

// valueIn returns the value of the key in an element.
func (by *mapKey) valueIn(element any) (name string, ok bool) {
	fields, isMap := element.(map[string]any)
	if !isMap {
		return "", false
	}
	name, ok = scalar(fields[by.field])
	if !ok || by.second == "" {
		return name, ok
	}
	second, ok := scalar(fields[by.second])
	if !ok {
		second = by.missing
	}
	return name + "\x00" + second, true
}

// find returns for every element of the manifest the position of its live counterpart, or -1.
func (by *mapKey) find(live, desired []any) []int {
	positions := make([]int, len(desired))
	var index map[string]int
	next := 0 // mostly the counterparts stand in the same order, without gaps
	for i, element := range desired {
		name, _ := by.valueIn(element)
		if next < len(live) {
			if other, ok := by.valueIn(live[next]); ok && other == name {
				positions[i] = next
				next++
				continue
			}
		}
		if index == nil {
			index = by.index(live)
		}
		position, found := index[name]
		if !found {
			position = -1
		}
		positions[i] = position
		if found {
			next = position + 1
		}
	}
	return positions
}

// index returns the position of the first live element of every name.
func (by *mapKey) index(live []any) map[string]int {
	index := make(map[string]int, len(live))
	for i, element := range live {
		name, ok := by.valueIn(element)
		if !ok {
			continue
		}
		if _, taken := index[name]; !taken {
			index[name] = i
		}
	}
	return index
}

// scalar returns a text for a string or a number, different for 80 and "80".
func scalar(value any) (string, bool) {
	switch v := value.(type) {
	case string:
		return v, true
	case int64:
		return "\x01" + strconv.FormatInt(v, 10), true
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<62 {
			return "\x01" + strconv.FormatInt(int64(v), 10), true
		}
		return "\x02" + string(binary.BigEndian.AppendUint64(nil, math.Float64bits(v))), true
	default:
		return "", false
	}
}

// mask is a tree of the fields that are ignored. The nil mask ignores nothing.
type mask struct {
	whole  bool
	fields map[string]*mask
}

// newMask builds a mask from JSON pointers.
func newMask(pointers []string) *mask {
	if len(pointers) == 0 {
		return nil
	}
	root := &mask{}
	for _, pointer := range pointers {
		at := root
		for segment := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
			segment = strings.ReplaceAll(strings.ReplaceAll(segment, "~1", "/"), "~0", "~")
			if at.fields == nil {
				at.fields = map[string]*mask{}
			}
			if at.fields[segment] == nil {
				at.fields[segment] = &mask{}
			}
			at = at.fields[segment]
		}
		at.whole = true
	}
	return root
}

// below returns the mask of a field.
func (m *mask) below(field string) *mask {
	if m == nil || m.whole {
		return m
	}
	return m.fields[field]
}

// element returns the mask of an element of a list.
func (m *mask) element(position int) *mask {
	if m == nil || m.whole {
		return m
	}
	return m.fields[strconv.Itoa(position)]
}

// all reports whether everything here is ignored.
func (m *mask) all() bool { return m != nil && m.whole }

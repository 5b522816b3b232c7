// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/binary"
	"math"
	"strconv"
)

// identity is a field, or two, that tells the elements of a list apart.
type identity struct {
	field string
	// second is a field that belongs to the identity, with the value that
	// servers use if it is missing.
	second, missing string
}

// identities are tried in this order. They are the keys that the types of
// Kubernetes and most custom resources use; the first that every element of the
// manifest has, each with another value, is the one. Paths of mounts come before
// names: a volume may be mounted once by us and once more by somebody else.
var identities = []identity{
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

// association returns the identity of the elements of a list, or nil if they
// have none.
func association(elements []any) *identity {
	for i := range identities {
		if identities[i].distinguishes(elements) {
			return &identities[i]
		}
	}
	return nil
}

// few is up to how many elements comparing each with each beats a map.
const few = 8

// distinguishes tells whether every element has the identity, each another one.
func (by *identity) distinguishes(elements []any) bool {
	var buffer [few]string
	names := buffer[:0]
	var seen map[string]bool
	if len(elements) > few {
		seen = make(map[string]bool, len(elements))
	}
	for _, element := range elements {
		name, ok := by.of(element)
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

// of returns the identity of an element.
func (by *identity) of(element any) (name string, ok bool) {
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

// find returns for every wanted element the position of its live counterpart, or -1.
func (by *identity) find(live, wanted []any) []int {
	positions := make([]int, len(wanted))
	var index map[string]int
	next := 0 // mostly the counterparts stand in the same order, without gaps
	for i, element := range wanted {
		name, _ := by.of(element)
		if next < len(live) {
			if other, ok := by.of(live[next]); ok && other == name {
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
func (by *identity) index(live []any) map[string]int {
	index := make(map[string]int, len(live))
	for i, element := range live {
		name, ok := by.of(element)
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

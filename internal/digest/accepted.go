// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import "slices"

// accepted writes the live values at the paths that the manifest sets.
func (e *encoder) accepted(live, manifest map[string]any, ignored *mask) {
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
		e.at(value, present, manifest[key], ignored.below(key))
	}
	e.keys = e.keys[:start]
}

// at writes what is live at a path where the manifest sets something.
func (e *encoder) at(live any, present bool, manifest any, ignored *mask) {
	if !present || live == nil {
		live, present = nil, false
	}
	switch wanted := manifest.(type) {
	case nil:
		// Null asks for nothing; what others put there is theirs.
	case map[string]any:
		fields, ok := live.(map[string]any)
		if present && !ok {
			e.value(live)
			return
		}
		// Absent and empty are the same: an empty map asks for nothing, and
		// the keys of others in it are theirs.
		e.tag(tagFields)
		e.fields(fields, wanted, ignored, nil)
	case []any:
		e.list(live, wanted, ignored)
	default:
		if !present {
			e.tag(tagAbsent)
			return
		}
		e.value(live)
	}
}

// list writes what is live of a list that the manifest sets.
func (e *encoder) list(live any, wanted []any, ignored *mask) {
	elements, ok := live.([]any)
	if !ok && live != nil {
		e.value(live)
		return
	}
	if len(wanted) > 0 {
		if by := association(wanted); by != nil {
			e.associated(elements, wanted, by, ignored)
			return
		}
	}
	// Absent and empty are the same: servers drop empty lists.
	e.tag(tagList)
	e.length(len(elements))
	for i, element := range elements {
		if i >= len(wanted) {
			e.value(element)
			continue
		}
		if at := ignored.element(i); !at.all() {
			e.at(element, true, wanted[i], at)
		}
	}
}

// associated writes the live counterpart of every wanted element, and in which
// order those stand. Foreign elements before, between and after them do not count.
func (e *encoder) associated(live, wanted []any, by *identity, ignored *mask) {
	e.tag(tagList)
	positions := by.find(live, wanted)
	last := -1
	for i, element := range wanted {
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
		e.at(live[position], true, element, at)
	}
}

// set writes which of the wanted strings are there.
func (e *encoder) set(live any, wanted []any) {
	elements, _ := live.([]any)
	there := make(map[string]bool, len(elements))
	for _, element := range elements {
		if name, ok := element.(string); ok {
			there[name] = true
		}
	}
	for _, value := range wanted {
		if name, ok := value.(string); ok {
			e.text(name)
			e.value(there[name])
		}
	}
}

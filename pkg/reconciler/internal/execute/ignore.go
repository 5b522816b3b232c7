// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"strconv"
	"strings"
)

// keepLive gives the field at a JSON pointer (RFC 6901) the value that it has
// in the live object, or removes it if it has none there. A PUT resets what it
// does not hold, so the field is set even if the manifest lacks it.
func keepLive(body, live map[string]any, pointer string) {
	path := split(pointer)
	if value, ok := lookup(live, path); ok {
		assign(body, path, deepCopy(value))
	} else {
		unset(body, path)
	}
}

// applyLive is keepLive for server-side apply: a field that the manifest lacks
// is left out, because sending it would make it ours.
func applyLive(body, live map[string]any, pointer string) {
	if _, ours := lookup(body, split(pointer)); ours {
		keepLive(body, live, pointer)
	}
}

func split(pointer string) []string {
	var path []string
	for _, segment := range strings.Split(strings.TrimPrefix(pointer, "/"), "/") {
		segment = strings.ReplaceAll(segment, "~1", "/")
		path = append(path, strings.ReplaceAll(segment, "~0", "~"))
	}
	return path
}

// lookup returns the value at the path.
func lookup(value any, path []string) (any, bool) {
	for _, segment := range path {
		switch container := value.(type) {
		case map[string]any:
			inner, ok := container[segment]
			if !ok {
				return nil, false
			}
			value = inner
		case []any:
			at, ok := index(container, segment)
			if !ok {
				return nil, false
			}
			value = container[at]
		default:
			return nil, false
		}
	}
	return value, true
}

// assign sets the value at the path. Maps on the way are made; elements of
// lists must exist, because what else they consist of is not known.
func assign(container any, path []string, value any) {
	last := len(path) == 1
	switch c := container.(type) {
	case map[string]any:
		if last {
			c[path[0]] = value
			return
		}
		if c[path[0]] == nil {
			if _, inList := strconv.Atoi(path[1]); inList == nil {
				return
			}
			c[path[0]] = map[string]any{}
		}
		assign(c[path[0]], path[1:], value)
	case []any:
		at, ok := index(c, path[0])
		switch {
		case !ok:
		case last:
			c[at] = value
		default:
			assign(c[at], path[1:], value)
		}
	}
}

// unset deletes the key at the path. Elements of lists stay: without them all
// later ones would have other places.
func unset(body map[string]any, path []string) {
	parent, ok := lookup(body, path[:len(path)-1])
	if m, isMap := parent.(map[string]any); ok && isMap {
		delete(m, path[len(path)-1])
	}
}

func index(list []any, segment string) (int, bool) {
	at, err := strconv.Atoi(segment)
	return at, err == nil && at >= 0 && at < len(list)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// limits say when many watches become one.
type limits struct {
	perNamespace, perType int
}

// standing is how far the watch of a place is.
type standing struct{ running, synced bool }

// arrange decides which watches of a type show all the places that somebody waits
// for, the widest first. Wider ones replace narrower ones only when they are synced.
// There is a gap between the number at which a wider one begins and that at which it
// ends, so that they do not come and go.
func arrange(gvr schema.GroupVersionResource, wanted map[place]bool, limits limits, stands func(place) standing) []place {
	names := map[string][]string{}
	for p := range wanted {
		names[p.namespace] = append(names[p.namespace], p.name)
	}
	var narrow []place
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		narrow = append(narrow, arrangeNamespace(gvr, namespace, names[namespace], limits.perNamespace, stands)...)
	}
	everywhere := place{gvr: gvr}
	at := stands(everywhere)
	switch {
	case !wanted[everywhere] && !tooMany(len(narrow), limits.perType, at):
		return narrow
	case at.synced:
		return []place{everywhere}
	}
	narrow = slices.DeleteFunc(narrow, func(p place) bool { return p == everywhere })
	return append([]place{everywhere}, narrow...)
}

// arrangeNamespace is arrange for one namespace, or for the objects that live in none.
func arrangeNamespace(gvr schema.GroupVersionResource, namespace string, names []string, limit int, stands func(place) standing) []place {
	all := place{gvr, namespace, ""}
	single := make([]place, 0, len(names))
	for _, name := range names {
		if name != "" {
			single = append(single, place{gvr, namespace, name})
		}
	}
	// Those that run go on, so that nothing moves without need.
	slices.SortFunc(single, func(a, b place) int {
		return cmp.Or(number(stands(b).running)-number(stands(a).running), cmp.Compare(a.name, b.name))
	})
	at := stands(all)
	switch {
	case len(single) == len(names) && !tooMany(len(single), limit, at):
		return single
	case at.synced:
		return []place{all}
	}
	return append([]place{all}, single[:min(len(single), limit)]...)
}

// tooMany tells whether so many watches are to be replaced by a wider one.
func tooMany(count, limit int, wider standing) bool {
	if wider.running {
		limit -= limit / 4
	}
	return count > limit
}

func number(b bool) int {
	if b {
		return 1
	}
	return 0
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package informer

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// limits decide how many watches there are, and when many become one.
type limits struct {
	// perNamespace is how many objects of one type in one namespace are watched one by one, and
	// perType how many watches of one type there are, before there is one for the whole cluster.
	perNamespace, perType int
	// total is the greatest number of watches. Objects beyond it notify no owner.
	total int
	// linger is how long a watch goes on that no owner needs any more.
	linger time.Duration
}

var defaultLimits = limits{perNamespace: 200, perType: 250, total: 500, linger: 30 * time.Second}

// watchState is how far the watch of a scope is.
type watchState struct{ running, synced bool }

// arrange decides which watches of a type show all the scopes that have subscriptions,
// the widest first. Wider ones replace narrower ones only when they are synced.
// There is a gap between the number at which a wider one starts and that at which it
// ends, so that they do not come and go.
func arrange(gvr schema.GroupVersionResource, subscribed map[scope]bool, limits limits, state func(scope) watchState) []scope {
	names := map[string][]string{}
	for at := range subscribed {
		names[at.namespace] = append(names[at.namespace], at.name)
	}
	var narrow []scope
	for _, namespace := range slices.Sorted(maps.Keys(names)) {
		narrow = append(narrow, arrangeNamespace(gvr, namespace, names[namespace], limits.perNamespace, state)...)
	}
	everywhere := scope{gvr: gvr}
	wide := state(everywhere)
	switch {
	case !subscribed[everywhere] && !isTooMany(len(narrow), limits.perType, wide):
		return narrow
	case wide.synced:
		return []scope{everywhere}
	}
	narrow = slices.DeleteFunc(narrow, func(at scope) bool { return at == everywhere })
	return append([]scope{everywhere}, narrow...)
}

// arrangeNamespace is arrange for one namespace, or for the objects that live in none.
func arrangeNamespace(gvr schema.GroupVersionResource, namespace string, names []string, limit int, state func(scope) watchState) []scope {
	all := scope{gvr, namespace, ""}
	single := make([]scope, 0, len(names))
	for _, name := range names {
		if name != "" {
			single = append(single, scope{gvr, namespace, name})
		}
	}
	// Running watches go on, so that nothing moves without need.
	slices.SortFunc(single, func(a, b scope) int {
		switch {
		case state(a).running == state(b).running:
			return cmp.Compare(a.name, b.name)
		case state(a).running:
			return -1
		}
		return 1
	})
	wide := state(all)
	switch {
	case len(single) == len(names) && !isTooMany(len(single), limit, wide):
		return single
	case wide.synced:
		return []scope{all}
	}
	return append([]scope{all}, single[:min(len(single), limit)]...)
}

// isTooMany reports whether so many watches are to be replaced by a wider one.
func isTooMany(count, limit int, wider watchState) bool {
	if wider.running {
		limit -= limit / 4
	}
	return count > limit
}

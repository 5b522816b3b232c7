// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"strings"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// checkCycles finds items that depend on themselves through others. Dependencies
// must be resolved before. A cycle is noted at the item where it was entered.
func (x index) checkCycles(items []*item) {
	w := walk{index: x, depth: map[*item]int{}}
	for _, item := range items {
		if !item.broken && len(item.policies.DependsOn) > 0 && w.depth[item] == 0 {
			w.visit(item)
		}
	}
}

// done marks items whose dependencies were all followed.
const done = -1

// walk follows dependencies, depth first.
type walk struct {
	index index
	// depth is the position in path, from 1, of the items on the current path.
	depth map[*item]int
	path  []*item
}

func (w *walk) visit(at *item) {
	w.path = append(w.path, at)
	w.depth[at] = len(w.path)
	for _, reference := range at.policies.DependsOn {
		next := w.index.items[plan.Key(reference)]
		if next == nil {
			continue
		}
		switch depth := w.depth[next]; {
		case depth == 0:
			w.visit(next)
		case depth > 0:
			next.mistake("depends on itself: %s", circle(w.path[depth-1:]))
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.depth[at] = done
}

// circle describes a way back to its start.
func circle(path []*item) string {
	const most = 10
	var names []string
	for i, item := range path {
		if i == most {
			names = append(names, "...")
			break
		}
		names = append(names, item.key.String())
	}
	return strings.Join(append(names, path[0].key.String()), " -> ")
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
)

// waiters stand in line, each once.
type waiters struct {
	line []types.NamespacedName
}

func (w *waiters) add(waiter types.NamespacedName) {
	if !slices.Contains(w.line, waiter) {
		w.line = append(w.line, waiter)
	}
}

func (w *waiters) remove(waiter types.NamespacedName) {
	w.line = slices.DeleteFunc(w.line, func(other types.NamespacedName) bool { return other == waiter })
}

// take removes the first ones and returns them.
func (w *waiters) take(n int) []types.NamespacedName {
	taken := slices.Clone(w.line[:min(n, len(w.line))])
	w.line = slices.Delete(w.line, 0, len(taken))
	return taken
}

// takeAll empties the line.
func (w *waiters) takeAll() []types.NamespacedName { return w.take(len(w.line)) }

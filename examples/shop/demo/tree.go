// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// tree renders a Shop and its dependents in the order of their stages, one line each.
func tree(v view) []string {
	if v.shop == nil {
		return []string{summary(v)}
	}
	lines := []string{headline(v)}
	dependents := byStage(v)
	kinds, names, states := widths(dependents)
	for i, d := range dependents {
		lastStage := dependents[len(dependents)-1].stage == d.stage
		lastOfStage := i+1 == len(dependents) || dependents[i+1].stage != d.stage
		if i == 0 || dependents[i-1].stage != d.stage {
			lines = append(lines, branch("", lastStage)+d.stage.title)
		}
		trunk := "│  "
		if lastStage {
			trunk = "   "
		}
		lines = append(lines, strings.TrimRight(fmt.Sprintf("%s%-*s  %-*s  %-*s  %s",
			branch(trunk, lastOfStage), kinds, d.kind, names, d.name, states, d.state, d.why), " "))
	}
	return lines
}

// headline is the Shop itself, and what it waits for.
func headline(v view) string {
	line := summary(v)
	if _, _, message := v.shop.Status.GetState(); message != "" && !v.shop.Status.IsReady() {
		line += "  " + strings.ReplaceAll(message, "\n", " ")
	}
	return line
}

// summary is the Shop itself.
func summary(v view) string {
	if v.shop == nil {
		return "Shop: " + stateGone
	}
	s := v.shop.Status
	return strings.TrimRight(fmt.Sprintf("Shop %s/%s: %s %s", v.shop.Namespace, v.shop.Name, cmp.Or(string(s.State), "not seen yet"), s.Progress), " ")
}

// byStage returns the dependents in the order of their stages, and as the inventory
// has them within a stage.
func byStage(v view) []dependent {
	sorted := slices.Clone(v.dependents)
	slices.SortStableFunc(sorted, func(a, b dependent) int { return cmp.Compare(a.stage.order, b.stage.order) })
	return sorted
}

func widths(dependents []dependent) (kinds, names, states int) {
	for _, d := range dependents {
		kinds, names, states = max(kinds, len(d.kind)), max(names, len(d.name)), max(states, len(d.state))
	}
	return kinds, names, states
}

func branch(trunk string, last bool) string {
	if last {
		return trunk + "└─ "
	}
	return trunk + "├─ "
}

// changes renders the Shop and the dependents with another state or reason than
// in an earlier view, for output that cannot redraw the tree.
func changes(before, after view) []string {
	was := map[string]dependent{}
	for _, d := range before.dependents {
		was[d.kind+" "+d.name] = d
	}
	var lines []string
	for _, d := range byStage(after) {
		old, known := was[d.kind+" "+d.name]
		if !known || old.state != d.state || old.why != d.why {
			lines = append(lines, strings.TrimRight(fmt.Sprintf("%-12s  %s %s: %s  %s", d.stage.title, d.kind, d.name, d.state, d.why), " "))
		}
		delete(was, d.kind+" "+d.name)
	}
	for _, d := range byStage(before) {
		if _, left := was[d.kind+" "+d.name]; left && d.object != nil {
			lines = append(lines, fmt.Sprintf("%-12s  %s %s: %s", d.stage.title, d.kind, d.name, stateGone))
		}
	}
	if summary(before) != summary(after) {
		lines = append(lines, summary(after))
	}
	return lines
}

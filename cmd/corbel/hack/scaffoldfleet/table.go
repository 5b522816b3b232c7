// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// table returns what the projects have come to: a row for each repository, for each project with a mistake, and
// for each that was tried live.
func table(projects []*project) string {
	var b strings.Builder
	b.WriteString("| repository | charts | made | role | golden | leaves typed |\n|---|---|---|---|---|---|\n")
	repositories := map[string][]*project{}
	var names []string
	for _, p := range projects {
		if repositories[p.repository] == nil {
			names = append(names, p.repository)
		}
		repositories[p.repository] = append(repositories[p.repository], p)
	}
	slices.Sort(names)
	for _, name := range names {
		b.WriteString(repositoryRow(name, repositories[name]))
	}
	b.WriteString(repositoryRow("all", projects))
	b.WriteString("\n| chart | what is wrong |\n|---|---|\n")
	for _, p := range projects {
		for _, problem := range []string{p.made, p.role, p.golden} {
			if problem != "ok" && problem != "" {
				fmt.Fprintf(&b, "| %s | %s |\n", p, problem)
			}
		}
	}
	b.WriteString("\n| chart | kinds of the role that no values render |\n|---|---|\n")
	for _, p := range projects {
		if len(p.optional) > 0 {
			fmt.Fprintf(&b, "| %s | %s |\n", p, strings.Join(p.optional, ", "))
		}
	}
	b.WriteString("\n| chart | rights | crashes | faults | refused, kinds unused |\n|---|---|---|---|---|\n")
	for _, p := range projects {
		if p.tests != nil {
			b.WriteString(p.liveRow() + "\n")
		}
	}
	return b.String()
}

func repositoryRow(name string, projects []*project) string {
	var made, role, golden, leaves, typed int
	for _, p := range projects {
		if p.made == "ok" {
			made++
		}
		if p.role == "ok" {
			role++
		}
		if p.golden == "ok" {
			golden++
		}
		leaves, typed = leaves+p.leaves, typed+p.typed
	}
	return fmt.Sprintf("| %s | %d | %d | %d | %d | %d of %d (%.1f %%) |\n", name, len(projects), made, role, golden, typed, leaves, 100*float64(typed)/float64(max(leaves, 1)))
}

// liveRow is the row of a project that was tried live.
func (p *project) liveRow() string {
	cells := []string{p.String()}
	for _, name := range liveTests {
		v := p.tests[name]
		if v.outcome == "ok" {
			v.outcome = v.took + " s"
		}
		cells = append(cells, firstSet(v.outcome, "not tried"))
	}
	return fmt.Sprintf("| %s | %d, %d |", strings.Join(cells, " | "), p.refused, p.unused)
}

// firstSet returns the first text that is not empty.
func firstSet(texts ...string) string {
	return texts[max(0, slices.IndexFunc(texts, func(text string) bool { return text != "" }))]
}

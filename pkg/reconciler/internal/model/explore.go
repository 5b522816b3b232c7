// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"strings"
)

// Report is the result of an exploration.
type Report struct {
	// States counts distinct States, Moves the ways between them.
	States, Moves int
	// Depth is the number of Moves of the longest of all shortest schedules.
	Depth int
	// Violation is the first invariant that was broken, and Schedule the
	// shortest way there; both are empty if none was.
	Violation string
	Schedule  []string
}

// Error describes a violation; empty if there was none.
func (r Report) Error() string {
	if r.Violation == "" {
		return ""
	}
	return fmt.Sprintf("%s\nafter\n  %s", r.Violation, strings.Join(r.Schedule, "\n  "))
}

// node is how a State was first reached.
type node struct {
	parent int32
	move   Move
}

// Explore visits all States that can be reached, the near ones first, until one
// breaks an invariant or there are limit of them; zero means no limit.
func (m *Model) Explore(limit int) Report {
	f := newFingerprinter(m)
	start := m.Start()
	visited := map[uint64]struct{}{f.of(m, start): {}}
	rests := map[uint64]bool{}
	nodes := []node{{parent: -1}}
	type open struct {
		state *State
		node  int32
	}
	frontier, next := []open{{state: start}}, []open(nil)
	var report Report
	var moves []Move
	for len(frontier) > 0 {
		for _, from := range frontier {
			moves = m.Moves(from.state, moves[:0])
			report.Moves += len(moves)
			for _, move := range moves {
				to := m.Do(from.state, move)
				if to.violation != "" {
					return m.failed(report, nodes, from.node, move, nil)
				}
				id := f.of(m, to)
				if _, known := visited[id]; known {
					continue
				}
				visited[id] = struct{}{}
				nodes = append(nodes, node{from.node, move})
				if to.isQuiet() {
					if way := m.converge(to, rests, f); len(way) > 0 && way[len(way)-1].violation != "" {
						return m.failed(report, nodes, from.node, move, way)
					}
				}
				next = append(next, open{to, int32(len(nodes) - 1)})
				report.States = len(visited)
				if limit > 0 && len(visited) >= limit {
					return report
				}
			}
		}
		frontier, next = next, frontier[:0:0]
		report.Depth++
	}
	return report
}

// failed adds the schedule that led to a violation to the report.
func (m *Model) failed(report Report, nodes []node, from int32, last Move, way []*State) Report {
	moves := []Move{last}
	for at := from; at > 0; at = nodes[at].parent {
		moves = append([]Move{nodes[at].move}, moves...)
	}
	s := m.Start()
	for _, move := range moves {
		s = m.Do(s, move)
		report.Schedule = append(report.Schedule, s.description)
	}
	report.Violation = s.violation
	if len(way) > 0 {
		report.Schedule = append(report.Schedule, "from here on without disturbances")
		for _, s := range way {
			report.Schedule = append(report.Schedule, s.description)
			report.Violation = s.violation
		}
	}
	return report
}

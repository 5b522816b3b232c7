// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strings"
)

// planTitles are the rows of the tables of plans, in their order.
var planTitles = []struct {
	scenario Scenario
	title    string
}{
	{PlanInstall, "plan of the installation"},
	{PlanUnchanged, "plan, nothing changed"},
	{PlanOne, "plan, one changed"},
	{PlanAll, "plan, all changed"},
	{PlanDelete, "plan of the deletion"},
	{ChangeAll, "change all, no plan"},
	{Rollback, "roll back all of them"},
}

// planSubjects are the columns of the tables of plans.
var planSubjects = []struct {
	subject Subject
	title   string
}{
	{Corbel, "Corbel"}, {Kubectl, "kubectl"}, {Flux, "Flux ssa"}, {Helm, "Helm"},
}

// plans returns what plans and a rollback of this size cost, as Markdown.
func (s Size) plans() string {
	var out strings.Builder
	fmt.Fprintf(&out, "### Plans and rollback of %s\n\n%s\n", s.title(), s.where())
	if s.Where.Load > float64(s.Where.Cores) {
		out.WriteString("The machine had other work, of more processes than it has cores: compare the requests, and not the times.\n\n")
	}
	fmt.Fprintf(&out, "Requests:\n\n%s\n", s.planTable(s.requestsOf))
	fmt.Fprintf(&out, "Time:\n\n%s\n", s.planTable(func(scenario Scenario, subject Subject) string {
		samples := s.Find(scenario, subject)
		seconds, _ := samples.Seconds()
		return value(samples, duration(seconds))
	}))
	fmt.Fprintf(&out, "Processor time of the process:\n\n%s", s.planTable(func(scenario Scenario, subject Subject) string {
		samples := s.Find(scenario, subject)
		return value(samples, duration(samples.CPU()))
	}))
	return out.String()
}

func (s Size) planTable(cell func(Scenario, Subject) string) string {
	t := table{head: []string{"work"}}
	for _, column := range planSubjects {
		t.head = append(t.head, column.title)
	}
	for _, row := range planTitles {
		var cells []string
		for _, column := range planSubjects {
			cells = append(cells, cell(row.scenario, column.subject))
		}
		t.add(row.title, cells...)
	}
	return t.String()
}

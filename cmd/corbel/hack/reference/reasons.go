// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// reasonLike is the name of a constant that is a reason.
var reasonLike = regexp.MustCompile(`^[rR]eason[A-Z]`)

// ofPlan is the package with the reasons of writes: labels of metrics, not reasons of conditions or events.
const ofPlan = "pkg/reconciler/internal/plan"

// explained is the file in which the command "corbel explain" looks, relative to folder.
const explained = "../../cmd/corbel/internal/cli/reasons.txt"

// reasons returns the reasons of conditions and events, by name. Those of notes are in package report.
func (r *reference) reasons() []*constantOf {
	note := regexp.MustCompile(`^(Note|Warn)[A-Z]`)
	reasons := r.all(func(c *constantOf) bool {
		return c.text() != "" && (c.pkg.path != ofPlan && reasonLike.MatchString(c.name) || c.pkg.path == "internal/report" && note.MatchString(c.name))
	})
	for _, c := range reasons {
		what := c.pkg.path + "." + c.name
		if c.pkg.path == "internal/vocabulary" {
			r.require(what, c.comment, keyConditions, keyState)
		}
		if r.require(what, c.comment, keyWhatToDo); c.comment.values[keyConditions] == "" && c.comment.values[keyEventType] == "" {
			r.lack("the comment of %s lacks a line \"%s: ...\" or \"%s: ...\"", what, keyConditions, keyEventType)
		}
		if of := c.comment.values[keyEventType]; of != "" && of != "Normal" && of != "Warning" {
			r.lack("the event type in the comment of %s is %q, and must be Normal or Warning", what, of)
		}
	}
	slices.SortFunc(reasons, func(a, b *constantOf) int { return strings.Compare(a.text(), b.text()) })
	return reasons
}

// facts returns the lines about a reason: where it is found, and what to do.
func (c *constantOf) facts() (lines []string) {
	found := c.comment.values[keyConditions]
	if state := c.comment.values[keyState]; state != "" {
		found += "; state " + state
	}
	if found != "" {
		lines = append(lines, "Conditions: "+found)
	}
	if of := c.comment.values[keyEventType]; of != "" {
		lines = append(lines, "Event: "+of)
	}
	if do := c.comment.values[keyWhatToDo]; do != "nothing." {
		lines = append(lines, keyWhatToDo+": "+do)
	}
	return lines
}

// explanations writes the file of "corbel explain". Empty lines separate the reasons.
func (r *reference) explanations() (*page, error) {
	p := &page{}
	for i, c := range r.reasons() {
		if i > 0 {
			p.line("")
		}
		p.line("%s\n  %s", c.text(), strings.Join(append([]string{c.comment.sentences(c.name)}, c.facts()...), "\n  "))
	}
	return p, nil
}

// reasonsPage writes the page of the conditions, the alerts and the reasons.
func (r *reference) reasonsPage() (*page, error) {
	p := newPage("Reasons", "The conditions of a component, the alerts of its operator, and the reasons of conditions and events. `corbel explain REASON` prints the entry of a reason.\n"+
		"The message of a condition or an event names the object and the details. [Troubleshooting](../troubleshooting.md) starts from a symptom.")
	p.line("\n## Conditions\n\nConditions that are not mentioned are absent. Hooks, generators and other controllers may add reasons.")
	p.table("condition", "meaning")
	for _, c := range r.all(func(c *constantOf) bool {
		return c.pkg.path == "api/v1alpha1" && strings.HasPrefix(c.name, "Condition")
	}) {
		r.require(c.name, c.comment)
		p.row(code(c.text()), c.comment.inTable(c.name))
	}
	p.line("\n## Events\n\n`kubectl events --for shop/main` lists the events of a component. When the status or the reason of Ready changes, an event has the reason and the message of Ready. Its type is Warning\n" +
		"if Ready is False, except for DeletionProcessing and DeletionBlocked. One reconcile sends at most three events about dependent objects and counts the others.")
	p.alerts()
	p.line("\n## All reasons")
	for _, c := range r.reasons() {
		p.line("\n### %s\n\n%s\n", c.text(), escape(c.comment.sentences(c.name)))
		for _, line := range c.facts() {
			p.line("- %s", escape(strings.Replace(line, keyWhatToDo, "Action", 1)))
		}
	}
	return p, nil
}

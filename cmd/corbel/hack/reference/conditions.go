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

// reasons returns the reasons of conditions and of events. Those of notes are in package report.
func (r *reference) reasons() []*constantOf {
	note := regexp.MustCompile(`^(Note|Warn)[A-Z]`)
	return r.all(func(c *constantOf) bool {
		return c.text() != "" && (c.pkg.path != ofPlan && reasonLike.MatchString(c.name) || c.pkg.path == "internal/report" && note.MatchString(c.name))
	})
}

// conditionReasons returns the reasons of conditions, by name.
func (r *reference) conditionReasons() []*constantOf {
	reasons := r.reasons()
	for _, c := range reasons {
		what := c.pkg.path + "." + c.name
		if c.pkg.path == "internal/vocabulary" {
			r.require(what, c.comment, keyConditions, keyState)
		}
		if r.require(what, c.comment, keyWhatToDo); c.comment.values[keyConditions] == "" && c.comment.values[keyEventType] == "" {
			r.lack("the comment of %s lacks a line \"%s: ...\" or \"%s: ...\"", what, keyConditions, keyEventType)
		}
	}
	reasons = slices.DeleteFunc(reasons, func(c *constantOf) bool { return c.comment.values[keyConditions] == "" })
	slices.SortFunc(reasons, func(a, b *constantOf) int { return strings.Compare(a.text(), b.text()) })
	return reasons
}

// conditions writes the page of the conditions and their reasons.
func (r *reference) conditions() (*page, error) {
	p := newPage("Conditions", "The conditions of a component, and their reasons. The message of the condition names the object and the details.\n"+
		"Conditions that are not mentioned are absent. Hooks, generators and other controllers of an operator may add reasons of their own; an error that\n"+
		"stalls the component and has none has the reason `Stalled`.")
	p.table("condition", "meaning")
	for _, c := range r.all(func(c *constantOf) bool {
		return c.pkg.path == "api/v1alpha1" && strings.HasPrefix(c.name, "Condition")
	}) {
		r.require(c.name, c.comment)
		p.row(code(c.text()), c.comment.inTable(c.name))
	}
	p.line("\n## Reasons")
	for _, c := range r.conditionReasons() {
		p.line("\n### %s\n\n%s\n", c.text(), strings.Join(c.comment.paragraphsAbout(c.name, c.text()), "\n\n"))
		p.line("- Conditions: %s", c.comment.value(keyConditions))
		if state := c.comment.value(keyState); state != "" {
			p.line("- State: %s", state)
		}
		p.line("- What to do: %s", c.comment.value(keyWhatToDo))
	}
	return p, nil
}

// statusTypes are the types of fields of the status.
var statusTypes = []string{"Source", "RevisionStatus", "Rollback", "PendingApproval", "Inventory", "InventoryOperator", "InventoryChunks"}

// status writes the page of the status.
func (r *reference) status() (*page, error) {
	status, err := r.typ("api/v1alpha1", "ComponentStatus")
	if err != nil {
		return nil, err
	}
	p := newPage("Status", "The fields of `component.Status`, which a component has in `status`. Conditions are explained in [conditions.md](conditions.md).")
	r.statusFields(p, status)
	p.line("\n## States")
	p.table("state", "meaning")
	for _, c := range r.valuesOf("State") {
		p.row(code(c.text()), c.comment.inTable(c.name))
	}
	p.line("\n## Results of revisions")
	p.table("result", "meaning")
	for _, c := range r.valuesOf("RevisionResult") {
		p.row(code(c.text()), c.comment.inTable(c.name))
	}
	for _, name := range statusTypes {
		t, err := r.typ("api/v1alpha1", name)
		if err != nil {
			return nil, err
		}
		p.line("\n## %s\n\n%s", name, strings.Join(t.comment.paragraphsAbout(name, name), "\n\n"))
		r.statusFields(p, t)
	}
	return p, nil
}

func (r *reference) statusFields(p *page, t typeOf) {
	p.table("field", "type", "meaning")
	for _, f := range t.fields() {
		r.require(t.name+"."+f.name, f.comment)
		p.row(code(f.json), code(f.typ), f.comment.inTable(f.name))
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// statusTypes are the types of fields of the status.
var statusTypes = []string{"Source", "RevisionStatus", "Rollback", "PendingApproval", "Inventory", "InventoryOperator", "InventoryChunks"}

// status writes the page of the status.
func (r *reference) status() (*page, error) {
	status, err := r.typ("api/v1alpha1", "ComponentStatus")
	if err != nil {
		return nil, err
	}
	p := newPage("Status", "The fields of `component.Status`, which a component has in `status`. Conditions are explained in [reasons.md](reasons.md).")
	r.statusFields(p, status)
	p.line("\n## States")
	p.line("")
	for _, c := range r.valuesOf("State") {
		p.item(code(c.text()), c.comment.inTable(c.name))
	}
	p.line("\n## Results of revisions")
	p.line("")
	for _, c := range r.valuesOf("RevisionResult") {
		p.item(code(c.text()), c.comment.inTable(c.name))
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
	p.line("")
	for _, f := range t.fields() {
		r.require(t.name+"."+f.name, f.comment)
		p.item(typed(f.json, f.typ), f.comment.inTable(f.name))
	}
}

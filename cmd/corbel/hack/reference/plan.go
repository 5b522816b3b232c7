// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// plan writes the page of plans.
func (r *reference) plan() (*page, error) {
	p := newPage("Plans", "A plan lists all writes until a component is ready, or gone. [Plan a change](../howto-operate.md#plan-a-change) shows how to get one. The server is asked about each changed object by a dry run.")
	p.line("%s", `
## Exit codes

With `+"`--exit-code`"+`, `+"`corbel plan` and `shop plan`"+` exit with:

| code | meaning |
|---|---|
| 0 | nothing changes |
| 1 | an error |
| 2 | objects are created or changed |
| 3 | objects are deleted or recreated, or pods restart |
| 4 | a change is refused or blocked |

## Plan a file

The spec in a file (`+"`-f`"+`) replaces the stored spec. Labels and annotations in the file are added to the stored ones. If the file has a `+"`resourceVersion`"+`, they replace the stored ones.

## Ask the operator with kubectl

`+"`corbel plan`"+` sends the question as an annotation and reads the answer from a Secret. With kubectl:

`+"```sh"+`
kubectl annotate shop main --overwrite shop.example.com/preview="$(date +%s)-$(head -c 10 /dev/urandom | base32 | tr A-Z a-z)"
`+"```"+`

The Secret is beside the component. Its name is `+"`corbel-preview-`"+` and the value of the annotation. The operator deletes it after ten minutes. The component is not reconciled for the question, and can be
suspended, Stalled or in deletion. Values of objects in other namespaces and clusters are left out. The option `+"`DisablePreviews`"+` turns this off.

## In Go

`+"`Reconciler.Plan` in package `component`"+` plans one component, also with the generator of another version of the operator. `+"`PlanAll`"+` plans all components.

## Classes of changes`)
	p.table("class", "meaning")
	for _, c := range r.all(func(c *constantOf) bool {
		return c.pkg.path == "internal/report" && strings.HasPrefix(c.name, "Change")
	}) {
		r.require(c.name, c.comment)
		p.row(code(c.text()), c.comment.inTable(c.name))
	}
	p.line("\n## The format\n\nThe options `-o json` and `-o yaml` print the Go type `component.Plan`, with `version: corbel.run/plan/v1`. Its comments describe the fields.")
	return p, nil
}

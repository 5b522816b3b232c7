// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"slices"
	"strings"
)

// events writes the page of the events.
func (r *reference) events() (*page, error) {
	p := newPage("Events", "Events are of the API `events.k8s.io/v1`: `kubectl events --for shop/main` lists those of a component. One reconcile sends\n"+
		"at most three for notes about dependent objects, one for the summary of what was written and one for the transition of Ready; what does not fit is counted.")
	reasons := slices.DeleteFunc(r.reasons(), func(c *constantOf) bool { return c.comment.values[keyEventType] == "" })
	slices.SortFunc(reasons, func(a, b *constantOf) int { return strings.Compare(a.text(), b.text()) })
	p.table("reason", "type", "when", "what to do")
	for _, c := range reasons {
		eventType := strings.TrimSuffix(c.comment.values[keyEventType], ".")
		if eventType != "Normal" && eventType != "Warning" {
			r.lack("the event type in the comment of %s.%s is %q, and must be Normal or Warning", c.pkg.path, c.name, eventType)
		}
		p.row(code(c.text()), eventType, c.comment.inTable(c.name), capitalized(c.comment.value(keyWhatToDo)))
	}
	p.line("\n## Transitions\n\nWhen the status or the reason of condition Ready changes, an event has the reason and the message of the condition. [conditions.md](conditions.md) says what to do. In place of Processing there is only the event Applied if objects were written.")
	p.table("reason", "type")
	for _, c := range r.conditionReasons() {
		ready, _, _ := strings.Cut(c.comment.values[keyConditions], ",")
		eventType := "Normal"
		switch {
		case !strings.HasPrefix(ready, "Ready "):
			continue // it is a reason of another condition, which makes no transition
		case strings.HasPrefix(ready, "Ready False") && !slices.Contains(quietFalse, c.text()):
			eventType = "Warning"
		}
		p.row("["+c.text()+"](conditions.md#"+strings.ToLower(c.text())+")", eventType)
	}
	return p, nil
}

// quietFalse are the reasons with which Ready is False although nothing has failed.
var quietFalse = []string{"DeletionProcessing", "DeletionBlocked"}

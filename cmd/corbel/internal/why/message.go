// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"regexp"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// statement is what the condition Ready says about one object.
type statement struct {
	object Object
	text   string
}

// subject is how messages begin what they say about an object, such as "Deployment shop/api: ".
var subject = regexp.MustCompile(`(?:^|[ (])([A-Z][A-Za-z0-9]+) ((?:[a-z0-9][-a-z0-9.]*/)?[A-Za-z0-9][^\s:;,/]*(?::[^\s:;,/]+)*): `)

// moreStatements is how a message ends that does not name all objects.
var moreStatements = regexp.MustCompile(`; and \d+ more$`)

// statements splits a message by the objects that it is about. What comes before the first is dropped,
// such as the verb of a request that was refused.
func statements(message string, inventory v1alpha1.Inventory) []statement {
	starts := slices.DeleteFunc(subject.FindAllStringSubmatchIndex(message, -1), func(m []int) bool {
		return message[m[2]:m[5]] == "Syntax error" // of an expression
	})
	var all []statement
	for i, m := range starts {
		end := len(message)
		if i+1 < len(starts) {
			end = starts[i+1][0]
		}
		kind, name := message[m[2]:m[3]], message[m[4]:m[5]]
		text := message[m[1]:end]
		// A verb before the next object belongs to that one.
		if cut := strings.LastIndex(text, "; "); i+1 < len(starts) && cut >= 0 && !strings.Contains(text[cut+2:], " ") {
			text = text[:cut]
		}
		if i+1 == len(starts) {
			text = moreStatements.ReplaceAllString(text, "")
		}
		all = append(all, statement{object: named(kind, name, inventory), text: strings.TrimRight(text, "; ")})
	}
	return all
}

// object is how messages name an object, without what they say about it.
var object = regexp.MustCompile(`^([A-Z][A-Za-z0-9]+) (\S+)`)

// named returns the object of a name such as "shop/api"; the group and the version are those of the
// inventory, else those of a type that every server serves.
func named(kind, name string, inventory v1alpha1.Inventory) Object {
	namespace, name, namespaced := strings.Cut(name, "/")
	if !namespaced {
		namespace, name = "", namespace
	}
	for _, item := range inventory.Items {
		if item.Kind == kind && item.Namespace == namespace && item.Name == name {
			return Object{Group: item.Group, Version: item.Version, Kind: kind, Namespace: namespace, Name: name}
		}
	}
	return known(kind, namespace, name)
}

// afterHooks is what messages say of dependents that hooks of the deletion come before.
const afterHooks = "is removed after what runs before the deletion"

// waitsFor returns the object that a dependent waits for, as the text about the dependent says; it is empty if no name is said.
func waitsFor(text string, inventory v1alpha1.Inventory) (Object, bool) {
	rest, ok := strings.CutPrefix(text, "waits for ")
	if m := object.FindStringSubmatch(rest); ok && m != nil {
		return named(m[1], strings.TrimRight(m[2], ",;"), inventory), true
	}
	return Object{}, ok || text == afterHooks
}

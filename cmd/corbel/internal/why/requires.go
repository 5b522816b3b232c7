// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package why

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/internal/requirement"
	"github.com/corbel-run/corbel/pkg/component"
)

// Requirement is an object that a component requires. The condition is an expression; the field is that of the component.
type Requirement struct {
	Object
	condition, field string
}

// Requirements returns what the spec of a component requires.
func Requirements(component *unstructured.Unstructured) (all []Requirement) {
	list, _, _ := unstructured.NestedSlice(component.Object, "spec", "requires")
	for i, entry := range list {
		content, _ := entry.(map[string]any)
		r := unstructured.Unstructured{Object: content}
		gvk, name := schema.FromAPIVersionAndKind(r.GetAPIVersion(), r.GetKind()), text(r, "name")
		if gvk.Kind != "" && name != "" { // else the field is another one
			o := Object{gvk.Group, gvk.Version, gvk.Kind, cmp.Or(text(r, "namespace"), component.GetNamespace()), name}
			all = append(all, Requirement{o, text(r, "condition"), fmt.Sprintf("spec.requires[%d]", i)})
		}
	}
	return all
}

// Lack reads the object that is required, and says what it lacks; nothing if it lacks nothing.
func (c Collector) Lack(ctx context.Context, r Requirement) string {
	return r.lack(c.answer(ctx, Question{Verb: verbGet, Object: r.Object}))
}

func (r Requirement) lack(answer Answer) string {
	if answer.isMissing() {
		return "does not exist"
	} else if !answer.exists() {
		return answer.Err.Error()
	}
	return requirement.Status(&answer.Objects[0], r.condition).Message
}

// required explains a message about an object that the component requires; it returns false if it is about none that lacks something.
func (e *explainer) required(message string) bool {
	for _, r := range Requirements(e.facts.Object) {
		if strings.Contains(message, "requires "+r.String()+": ") {
			return e.follow(r, message)
		}
	}
	return false
}

// maxRequired bounds how many components are followed that wait for each other.
const maxRequired = 5

// follow explains why an object is not as it is required, as far as components wait for each other.
func (e *explainer) follow(r Requirement, message string) bool {
	q := Question{Verb: verbGet, Object: r.Object}
	answer, answered := e.facts.Answers[q] // not by ask: the object is in the cluster of the component
	code, command, next, rest := Unclassified, r.kubectl("get", "-o", "yaml"), Link{Object: r.Object, Message: "is not ready"}, []Link(nil)
	if answered {
		next.Message = r.lack(answer)
	} else {
		e.open = append(e.open, q)
	}
	isSame := func(o Object) bool { o.Version = r.Version; return o == r.Object }
	of := typed[struct {
		Status component.Status `json:"status"`
	}](answer.Objects)
	switch waiting := append(slices.Clone(e.facts.waiting), e.component()); {
	case next.Message == "":
		return false
	case answer.isMissing():
		code, command = MissingReference, kubectl(r.Namespace, "get", r.resource())
	case slices.ContainsFunc(waiting, isSame):
		next.Message = "requires in turn what waits for it: remove a requirement from one of the specs"
	case len(of) == 0 || of[0].Status.Reconciler == "": // it is no component
	case len(waiting) == maxRequired:
		command = r.corbel("why")
	default:
		chain, open := explain(Facts{Object: &answer.Objects[0], Status: of[0].Status, Reconciler: of[0].Status.Reconciler, Answers: e.facts.Answers, waiting: waiting}, e.now)
		e.open, e.chain.HeldBack, e.chain.Unknown = append(e.open, open...), chain.HeldBack, append(e.chain.Unknown, chain.Unknown...)
		if rest = chain.Links; len(rest) > 0 {
			code, command = chain.Code, chain.Command
		}
	}
	if len(rest) == 0 || !isSame(rest[0].Object) {
		rest = append([]Link{next}, rest...)
	}
	e.found(code, command, append([]Link{{Object: e.component(), Field: r.field, Message: message, Since: e.chain.Since}}, rest...)...)
	return true
}

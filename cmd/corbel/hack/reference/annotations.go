// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"slices"
	"strings"
)

// annotationLike is the name of a constant that is the name, or the end of the name, of an annotation or label.
var annotationLike = regexp.MustCompile(`^([aA]nnotation|[lL]abel)[A-Z]`)

// group is a section of the page of annotations.
type group struct {
	title, introduction string
	has                 func(*constantOf) bool
}

func isForeign(c *constantOf) bool { return strings.Contains(c.text(), "/") }
func isFound(c *constantOf) bool   { return c.comment.values[keySetBy] != "" }
func isOfComponent(c *constantOf) bool {
	return strings.HasPrefix(c.comment.values[keyOn], "the component")
}

// isLevelled reports whether users set the annotation, and it is ours.
func isLevelled(c *constantOf) bool { return !isFound(c) && !isForeign(c) }

// level says how often users meet an annotation.
type level struct{ name, meaning string }

var levels = []level{
	{"daily", "learn these first"},
	{"special", "for one problem"},
	{"migration", "once, when a component takes over what exists"},
}

var groups = []group{
	{"Set on dependent objects", "Authors put these annotations into the manifests. A mistake in one stalls the component, and the message names all of them.",
		func(c *constantOf) bool { return !isFound(c) && !isForeign(c) && !isOfComponent(c) }},
	{"Set on components", "Users put these annotations on the custom resource, for example with `kubectl annotate`.",
		func(c *constantOf) bool { return !isFound(c) && !isForeign(c) && isOfComponent(c) }},
	{"Set by the operator", "Users find these labels and annotations. They do not set them.", isFound},
	{"Of other tools", "These annotations and labels of other tools have an effect, too. Their names are complete. The annotations delete-policy, apply-order and depends-on take precedence.",
		func(c *constantOf) bool { return !isFound(c) && isForeign(c) }},
}

// annotations writes the page of the annotations and labels.
func (r *reference) annotations() (*page, error) {
	p := newPage("Annotations and labels", "`<name>` is the name of the reconciler, the first argument of `component.NewReconciler`, or the option `Name` of package lifecycle.\n"+
		"The examples have the name `shop.example.com`. An unknown annotation with this prefix on a dependent object is a mistake.\n"+
		"The values of policies are explained in [spec.md](spec.md#policies).")
	all := r.all(func(c *constantOf) bool { return c.text() != "" && annotationLike.MatchString(c.name) })
	for _, c := range all {
		what := c.pkg.path + "." + c.name
		r.require(what, c.comment, keyOn, keyFormat, keyExample)
		if !isFound(c) {
			r.require(what, c.comment, keyDefault)
		}
		if of := c.comment.values[keyLevel]; isLevelled(c) && !slices.ContainsFunc(levels, func(l level) bool { return l.name == of }) {
			r.lack("the comment of %s needs a line that begins with \"Level: \" and is one of daily, special and migration", what)
		}
		name, _, _ := strings.Cut(c.comment.values[keyExample], ": ")
		if name = strings.TrimPrefix(name, "shop.example.com/"); name != "" && name != c.text() && !strings.HasPrefix(name, c.text()+".") {
			r.lack("the example in the comment of %s does not begin with %q", what, "shop.example.com/"+c.text()+": ")
		}
	}
	p.line("\n## Three levels\n")
	p.table("level", "on dependent objects", "on components")
	for _, l := range levels {
		var links [2][]string
		for _, c := range all {
			if c.comment.values[keyLevel] == l.name {
				at := 0
				if isOfComponent(c) {
					at = 1
				}
				links[at] = append(links[at], "["+c.text()+"](#"+c.text()+")")
			}
		}
		p.row(l.name+": "+l.meaning, strings.Join(links[0], ", "), strings.Join(links[1], ", "))
	}
	for _, g := range groups {
		p.line("\n## %s\n\n%s", g.title, g.introduction)
		for _, c := range all {
			if g.has(c) {
				p.annotation(c)
			}
		}
	}
	return p, nil
}

// annotation writes the section of an annotation.
func (p *page) annotation(c *constantOf) {
	name := c.text()
	if p.line("\n### %s\n", name); !isForeign(c) {
		name = "<name>/" + name
	}
	p.line("%s\n", strings.Join(c.comment.paragraphsAbout(c.name, name), "\n\n"))
	for _, key := range []string{keyOn, keySetBy, keyFormat, keyDefault} {
		if value := c.comment.value(key); value != "" && value != "none" && value != "\"false\"" && value != "dependent objects" && value != "the component" {
			p.line("- %s: %s", key, value)
		}
	}
	if !c.comment.formatHasExample() {
		p.line("- %s: `%s`", keyExample, c.comment.values[keyExample])
	}
	if also := c.comment.value(keyAlso); also != "" {
		p.line("- %s: %s", keyAlso, also)
	}
}

// formatHasExample reports whether the format lists the value of the example, which then says nothing new.
func (c comment) formatHasExample() bool {
	_, value, _ := strings.Cut(c.values[keyExample], ": ")
	listed := strings.FieldsFunc(c.values[keyFormat], func(r rune) bool { return strings.ContainsRune(" ,;", r) })
	return slices.Contains(listed, value)
}

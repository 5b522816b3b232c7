// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// partTypes are the types of fields of the embeddable types, and those of references.
var partTypes = []struct{ folder, name string }{
	{"pkg/component", "KubeConfigSpec"}, {"pkg/component", "Requirement"},
	{"pkg/component", "SecretReference"}, {"pkg/component", "SecretKeyReference"},
	{"pkg/component", "ConfigMapReference"}, {"pkg/component", "ConfigMapKeyReference"},
	{"api/v1alpha1", "TypeInfo"}, {"api/v1alpha1", "Patch"}, {"api/v1alpha1", "PatchTarget"}, {"api/v1alpha1", "Image"},
}

// spec writes the page of what can be embedded in the spec of a component.
func (r *reference) spec() (*page, error) {
	p := newPage("Parts of a spec", "Types of package component to embed in the spec of a component, so that its users can set the fields. The names are those in YAML; the Go fields begin with a capital letter.\n"+
		"Each type implements an interface. A component type, or its spec, may implement the interface in place of embedding the type; a method of the component type takes precedence.")
	var interfaces []typeOf
	for _, t := range r.packages["pkg/component"].types() {
		if names, _ := t.methods(); strings.HasSuffix(t.name, "Configuration") && len(names) > 0 {
			interfaces = append(interfaces, t)
		}
	}
	implemented := map[string]bool{}
	for _, t := range r.packages["pkg/component"].types() {
		if !strings.HasSuffix(t.name, "Spec") || t.name == "KubeConfigSpec" || !ast.IsExported(t.name) {
			continue
		}
		text, further, _ := strings.Cut(strings.Join(t.comment.paragraphsAbout(t.name, t.name), " "), ". ")
		if strings.Contains(text, " implements ") {
			text = ""
			for _, i := range interfaces {
				if names, _ := i.methods(); slices.Contains(strings.Fields(t.comment.paragraphs[0]), i.name) || strings.Contains(t.comment.paragraphs[0], i.name+".") {
					text += "Interface " + code(i.name) + ": " + code(strings.Join(names, "`, `")) + ". "
					implemented[i.name] = true
				}
			}
		} else {
			text += ". "
		}
		p.line("\n## %s\n\n%s", t.name, strings.TrimSpace(text+further))
		r.fields(p, "pkg/component", t)
	}
	p.line("\n## Types of fields")
	for _, part := range partTypes {
		t, err := r.typ(part.folder, part.name)
		if err != nil {
			return nil, err
		}
		p.line("\n### %s\n\n%s", t.name, strings.Join(t.comment.paragraphsAbout(t.name, t.name), " "))
		r.fields(p, part.folder, t)
	}
	for _, i := range interfaces {
		if !implemented[i.name] {
			r.lack("no type in pkg/component says that it implements %s", i.name)
		}
	}
	r.policies(p)
	return p, nil
}

// fields writes the table of the fields of a struct that users write as YAML.
func (r *reference) fields(p *page, folder string, t typeOf) {
	p.line("")
	for _, f := range t.fields() {
		what := folder + "." + t.name + "." + f.name
		otherwise := "Required"
		if r.require(what, f.comment); f.comment.isOptional() {
			r.require(what, f.comment, keyDefault)
			otherwise = f.comment.otherwise()
		}
		p.item(typed(f.json, f.typ), f.comment.inTable(f.name), otherwise)
	}
}

// policyTypes are the policies, in the order of the page.
var policyTypes = []string{"AdoptionPolicy", "ReconcilePolicy", "UpdatePolicy", "DeletePolicy", "DriftPolicy", "MissingNamespacesPolicy", "ManagementPolicy"}

// valuesOf returns the constants of a type of package v1alpha1.
func (r *reference) valuesOf(name string) []*constantOf {
	return r.all(func(c *constantOf) bool { return c.pkg.path == "api/v1alpha1" && c.typ == name })
}

// policies writes the values of the policies, and notes annotations that do not list them.
func (r *reference) policies(p *page) {
	p.line("\n## Policies\n\nOptions and specs have the first form of a value, and annotations the second.")
	for _, name := range policyTypes {
		t, err := r.typ("api/v1alpha1", name)
		if err != nil {
			r.lack("%v", err)
			continue
		}
		p.line("\n### %s\n\n%s", name, strings.Join(t.comment.paragraphsAbout(name, name), " "))
		p.line("")
		annotation := r.packages["api/v1alpha1"].constants["Annotation"+name]
		for _, c := range r.valuesOf(name) {
			value, written := kebab(c.text()), code(c.text())
			r.require("api/v1alpha1."+c.name, c.comment)
			if annotation == nil {
				value = ""
			} else if written += " (" + code(value) + ")"; !slices.Contains(strings.Fields(strings.NewReplacer(",", " ", ".", " ").Replace(annotation.comment.values[keyFormat])), value) {
				r.lack("the format of %s does not list %s", annotation.name, value)
			}
			p.item(written, c.comment.inTable(c.name))
		}
	}
}

// kebab returns a value of a policy as it is written in annotations: "ssa-merge" for "SsaMerge".
func kebab(value string) string {
	var b strings.Builder
	for i, r := range value {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
)

// optionTypes are the structs of the page of options, in its order.
var optionTypes = []struct{ folder, name string }{
	{"pkg/operator", "Options"},
	{"cmd/corbel/ui", "Options"},
	{"pkg/component", "ReconcilerOptions"}, {"pkg/component", "ObjectOptions"}, {"pkg/component", "RevisionOptions"}, {"pkg/component", "Rollout"},
	{"pkg/component", "UserOptions"}, {"pkg/component", "ControllerOptions"}, {"pkg/component", "OperatorOptions"},
	{"pkg/reconciler", "ReconcilerOptions"}, {"pkg/reconciler", "ReadyWhen"}, {"pkg/reconciler", "IgnoreFields"},
	{"pkg/manifests/helm", "Options"},
	{"pkg/manifests/gotemplate", "Options"},
	{"pkg/manifests", "TemplateLimits"},
	{"pkg/manifests/kustomize", "Options"}, {"pkg/manifests/kustomize", "Templates"}, {"pkg/manifests/kustomize", "Limits"},
	{"pkg/manifests/krm", "Function"},
	{"pkg/manifests", "Isolation"},
	{"pkg/lifecycle", "Options"}, {"pkg/lifecycle/external", "Options"},
	{"pkg/changes", "Options"},
}

// otherOptions are structs by the name of Options that are parameters of single calls.
var otherOptions = []string{"pkg/patch.HelperOptions", "pkg/status.Options", "pkg/manifests/manifeststest.HelmOptions"}

// numeric is a type that has a unit.
var numeric = regexp.MustCompile(`^\*?(u?int(32|64)?|float64)$`)

// options writes the page of the options.
func (r *reference) options() (*page, error) {
	p := newPage("Options", "The options that the author of an operator sets in Go. The default is the zero value, unless an option says otherwise.\n"+
		"[spec.md](spec.md#policies) explains the values of policies, and [limits.md](limits.md) has the limits that no option changes.")
	for _, o := range optionTypes {
		t, err := r.typ(o.folder, o.name)
		if err != nil {
			return nil, err
		}
		name := o.folder[strings.LastIndex(o.folder, "/")+1:] + "." + o.name
		p.line("\n## %s\n\n%s", name, strings.Join(t.comment.paragraphsAbout(o.name, name), "\n\n"))
		p.line("")
		for _, f := range t.fields() {
			r.option(p, o.folder+"."+o.name, f)
		}
	}
	p.line("\n## Files of manifests.FromFS\n\nEach function returns an option for `manifests.FromFS`.")
	p.line("")
	for _, f := range r.packages["pkg/manifests"].functions() {
		if f.Type.Results != nil && text(f.Type.Results.List[0].Type) == "FSOption" {
			r.function(p, "pkg/manifests", f)
		}
	}
	p.line("\n## Package transform\n\nEach function returns a transformer for `manifests.Transform`.")
	p.line("")
	for _, f := range r.packages["pkg/manifests/transform"].functions() {
		r.function(p, "pkg/manifests/transform", f)
	}
	return p, nil
}

func (r *reference) option(p *page, of string, f fieldOf) {
	if f.embedded {
		p.line("- all fields of %s", code(f.typ))
		return
	}
	what := of + "." + f.name
	if r.require(what, f.comment, keyDefault); numeric.MatchString(f.typ) {
		r.require(what, f.comment, keyUnit)
	}
	p.item(typed(f.name, f.typ), f.comment.inTable(f.name), f.comment.otherwise(), f.comment.unit())
}

func (r *reference) function(p *page, folder string, f *ast.FuncDecl) {
	name, c := f.Name.Name, parseComment(f.Doc)
	r.require(folder+"."+name, c)
	p.item(code(name+strings.TrimPrefix(text(f.Type), "func")), c.inTable(name))
}

// unlisted returns the structs by the name of options that no page has.
func (r *reference) unlisted() []string {
	var names []string
	for _, p := range r.sorted() {
		for _, t := range p.types() {
			name := p.path + "." + t.name
			listed := slices.ContainsFunc(optionTypes, func(o struct{ folder, name string }) bool { return o.folder+"."+o.name == name })
			if isPublic(p.path) && ast.IsExported(t.name) && strings.HasSuffix(t.name, "Options") && t.fields() != nil && !listed && !slices.Contains(otherOptions, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// isPublic reports whether users import the package.
func isPublic(folder string) bool {
	return !slices.Contains(strings.Split(folder, "/"), "internal")
}

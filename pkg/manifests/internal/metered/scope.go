// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"fmt"
	"path"
	"strings"
	"text/template"
)

// Scope is a set of templates that call each other, with the functions that
// depend on the set.
type Scope struct {
	templates *template.Template
	parser    Parser
	meter     *Meter
}

// NoTemplate is how the error about a template that does not exist begins.
const NoTemplate = "there is no template"

// NewScope returns a scope of the templates, which it changes, with these
// functions. Those that a template could do harm with get a guard.
func NewScope(templates *template.Template, parser Parser, meter *Meter, functions template.FuncMap) *Scope {
	templates.Funcs(meter.guarded(functions))
	templates.Funcs(meter.printing())
	return (&Scope{templates: templates, parser: parser, meter: meter}).bind()
}

// Execute returns the output of a template, which counts as output of the
// rendering.
func (s *Scope) Execute(name string, data any) (string, error) {
	called := s.templates.Lookup(name)
	if called == nil || called.Tree == nil {
		return "", fmt.Errorf(NoTemplate+" %q", name)
	}
	s.meter.callers = append(s.meter.callers[:0], name)
	output := &buffer{meter: s.meter, total: true}
	if err := called.Execute(output, data); err != nil {
		return "", Describe(name, err)
	}
	return output.String(), nil
}

// bind makes the functions of the scope known to its templates.
func (s *Scope) bind() *Scope {
	s.templates.Funcs(template.FuncMap{
		"include":    s.include,
		templateName: s.include,
		"tpl":        s.tpl,
	})
	return s
}

// include returns the output of a template.
func (s *Scope) include(name string, data any) (string, error) {
	if err := s.meter.enter(name); err != nil {
		return "", err
	}
	defer s.meter.leave()
	called := s.templates.Lookup(name)
	if called == nil {
		// The folder of the templates may be "." and lead to "./name".
		called = s.templates.Lookup(path.Clean(name))
	}
	if called == nil || called.Tree == nil {
		return "", fmt.Errorf(NoTemplate+" %q", name)
	}
	text, err := s.run(called, data)
	if err != nil {
		return "", &innerError{err: err}
	}
	return text, nil
}

func (s *Scope) run(called *template.Template, data any) (string, error) {
	text := &buffer{meter: s.meter}
	if err := called.Execute(text, data); err != nil {
		return "", err
	}
	if err := s.meter.spend(int64(text.Len())); err != nil {
		return "", err
	}
	return text.String(), nil
}

// tpl renders a text as a template. Templates that it defines, or defines
// anew, are so for this text only.
func (s *Scope) tpl(text string, data any) (string, error) {
	if err := s.meter.enter("tpl"); err != nil {
		return "", err
	}
	defer s.meter.leave()
	if err := s.meter.spend(int64(len(text))); err != nil {
		return "", err
	}
	clone, err := s.templates.Clone()
	if err != nil {
		return "", err
	}
	inner := (&Scope{templates: clone, parser: s.parser, meter: s.meter}).bind()
	const name = "tpl"
	// A new one: a text of blanks would not take the place of the text that calls it.
	called := clone.New(name)
	if err := inner.parser.Parse(called, name, text, nil); err != nil {
		return "", err
	}
	result, err := inner.run(called, data)
	if err != nil {
		return "", &innerError{err: err}
	}
	if s.meter.nothing != "" {
		// As Helm does, unlike for include.
		result = strings.ReplaceAll(result, s.meter.nothing, "")
	}
	return result, nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metered

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

const (
	// maxSource limits the text of one template, because the parser's use of
	// the stack grows with what it is made of.
	maxSource = 1 << 20
	// maxText limits the text of a template that has few actions.
	maxText = 16 << 20
	// maxActions and maxParentheses are what a text may have of these beyond
	// maxSource.
	maxActions     = 100_000
	maxParentheses = 100_000
)

// Parser adds texts to a set of templates.
type Parser struct {
	left, right string
	// functions are the names that templates may call.
	functions map[string]any
}

// NewParser returns a parser for texts with the delimiters, by default "{{" and
// "}}", that may call the functions and those that a Scope brings.
func NewParser(left, right string, functions template.FuncMap) Parser {
	names := callable(functions)
	return Parser{left: cmp.Or(left, "{{"), right: cmp.Or(right, "}}"), functions: names}
}

// Parse adds the templates of a text: the text itself under its name, and what
// it defines. The names that are taken lead to where they were defined; if taken
// is nil, what comes later wins, as in text/template.
func (p Parser) Parse(set *template.Template, name, text string, taken map[string]string) error {
	if err := p.checkSize(text); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	trees, err := parse.Parse(name, text, p.left, p.right, p.functions)
	if err != nil {
		return errors.New(strings.TrimPrefix(err.Error(), "template: "))
	}
	for _, defined := range slices.Sorted(maps.Keys(trees)) {
		tree := trees[defined]
		if defined != name && parse.IsEmptyTree(tree.Root) && taken[defined] != "" {
			continue
		}
		if where, twice := taken[defined]; twice {
			return fmt.Errorf("%s: template %q is already defined in %s", name, defined, where)
		}
		if taken != nil {
			taken[defined] = name
		}
		if err := rewrite(tree); err != nil {
			return err
		}
		if _, err := set.AddParseTree(defined, tree); err != nil {
			return fmt.Errorf("%s: template %q: %w", name, defined, err)
		}
	}
	return nil
}

func (p Parser) checkSize(text string) error {
	if len(text) <= maxSource {
		return nil
	}
	few := strings.Count(text, p.left) <= maxActions && strings.Count(text, "(") <= maxParentheses
	if !few || len(text) > maxText {
		return Exceeded("the template is longer than %d bytes", maxSource)
	}
	return nil
}

// builtins are the functions of text/template that we leave as they are.
var builtins = []string{"and", "or", "not", "len", "index", "slice", "call", "eq", "ge", "gt", "le", "lt", "ne"}

// callable returns the names that a template may call.
func callable(functions template.FuncMap) map[string]any {
	names := make(map[string]any, len(functions))
	for _, name := range slices.Concat(builtins, []string{printName, templateName, tickName, "include", "tpl", "lookup"}) {
		names[name] = true
	}
	for name := range functions {
		names[name] = true
	}
	return names
}

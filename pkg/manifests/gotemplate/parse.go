// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/template"
	"text/template/parse"
)

// maxSource limits the text of one template, because the parser's use of the
// stack grows with it.
const maxSource = 1 << 20

// parser adds texts to a set of templates.
type parser struct {
	options Options
	// functions are the names that templates may call.
	functions map[string]any
}

// parse adds the templates of a text: the text itself under its name, and what
// it defines. The names that are taken lead to where they were defined.
func (p parser) parse(set *template.Template, name, text string, taken map[string]string) error {
	if len(text) > maxSource {
		return fmt.Errorf("%s: the template is longer than %d bytes", name, maxSource)
	}
	trees, err := parse.Parse(name, text, p.options.LeftDelimiter, p.options.RightDelimiter, p.functions)
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

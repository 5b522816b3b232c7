// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"text/template"

	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// Texts renders templates to texts, whatever these are. It is for generators
// that do something else with the result than reading it as manifests. It may
// be used by several goroutines at once.
type Texts struct {
	options   Options
	parser    templates.Parser
	templates *template.Template
	// rendered are the names of the templates that give texts.
	rendered []string
	base     string
	runner   *timeout.Runner
}

// NewTexts parses the templates, by their names. All of them share their
// definitions, and those whose base name starts with an underscore are not
// rendered. Base is what templates see as .Template.BasePath, and what errors
// name. The error lists all mistakes, with name and line.
func NewTexts(base string, sources map[string]string, options Options) (*Texts, error) {
	var rendered []string
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !strings.HasPrefix(path.Base(name), "_") {
			rendered = append(rendered, name)
		}
	}
	return newTexts(base, sources, rendered, options)
}

// newTexts is NewTexts with a choice of what is rendered.
func newTexts(base string, sources map[string]string, rendered []string, options Options) (*Texts, error) {
	t := &Texts{base: path.Clean(base), rendered: rendered, runner: timeout.New("templates in " + path.Clean(base))}
	var err error
	if t.options, err = options.complete(); err != nil {
		return nil, err
	}
	names := maps.Clone(functions)
	maps.Copy(names, t.options.Functions)
	t.parser = templates.NewParser(t.options.LeftDelimiter, t.options.RightDelimiter, names)
	t.templates = template.New("").Option(missingKey(t.options.Strict))
	taken := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		text := strings.TrimPrefix(sources[name], "\ufeff")
		errs = append(errs, t.parser.Parse(t.templates, name, text, taken))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// Render returns what the templates give for the parameters, by the names of
// the templates. Its errors are those of Generator.Generate.
func (t *Texts) Render(ctx context.Context, namespace, name string, parameters types.Unstructurable) (map[string]string, error) {
	data, err := dataFor(ctx, namespace, name, parameters)
	if err != nil {
		return nil, err
	}
	return timeout.Run(ctx, t.runner, t.options.Timeout, func(ctx context.Context) (map[string]string, error) {
		texts := make(map[string]string, len(t.rendered))
		err := t.render(ctx, data, func(name, text string) error {
			texts[name] = text
			return nil
		})
		return texts, err
	})
}

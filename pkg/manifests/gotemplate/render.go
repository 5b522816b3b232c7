// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// maxFailures limits how many files are reported that do not render.
const maxFailures = 10

// render renders all files and decodes what comes out. A mistake in one file
// does not keep the others from being tried.
func (g *Generator) render(ctx context.Context, data map[string]any) ([]client.Object, error) {
	m := &meter{limits: g.options.Limits, interrupted: ctx.Err}
	s, err := g.scopeFor(ctx, m)
	if err != nil {
		return nil, err
	}
	objects := []client.Object{}
	var errs []error
	for _, name := range g.rendered {
		rendered, err := g.renderFile(s, name, data)
		if err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil || len(errs) == maxFailures {
				break
			}
		}
		objects = append(objects, rendered...)
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return objects, nil
}

// scopeFor returns the templates with functions that count for this rendering.
func (g *Generator) scopeFor(ctx context.Context, m *meter) (*scope, error) {
	templates, err := g.templates.Clone()
	if err != nil {
		return nil, err
	}
	functions := maps.Clone(g.functions)
	for _, replaced := range []map[string]any{m.counting(), m.multiplying(g.library), m.splitting(g.library), m.expensive(g.library)} {
		maps.Copy(functions, replaced)
	}
	// Functions of the user win.
	maps.Copy(functions, g.options.Functions)
	functions["lookup"] = lookupFor(ctx, g.options.DisableLookup)
	templates.Funcs(m.guarded(functions))
	templates.Funcs(m.printing())
	s := &scope{templates: templates, parser: g.parser, meter: m}
	return s.bind(), nil
}

func (g *Generator) renderFile(s *scope, name string, data map[string]any) (objects []client.Object, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%s: %w", name, &manifests.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	s.meter.callers = append(s.meter.callers[:0], name)
	data = maps.Clone(data)
	data["Template"] = map[string]any{"Name": name, "BasePath": g.base}
	output := &buffer{meter: s.meter, total: true}
	if err := s.templates.Lookup(name).Execute(output, data); err != nil {
		return nil, describe(name, err)
	}
	decoded, err := manifests.Decode(name+" (rendered)", []byte(output.String()))
	for _, object := range decoded {
		objects = append(objects, object)
	}
	return objects, err
}

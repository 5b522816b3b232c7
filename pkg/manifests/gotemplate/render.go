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
	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

// maxFailures limits how many files are reported that do not render.
const maxFailures = 10

// render renders all files and decodes what comes out. A mistake in one file
// does not keep the others from being tried.
func (g *Generator) render(ctx context.Context, data map[string]any) ([]client.Object, error) {
	s, err := g.scopeFor(ctx)
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
func (g *Generator) scopeFor(ctx context.Context) (*metered.Scope, error) {
	templates, err := g.templates.Clone()
	if err != nil {
		return nil, err
	}
	meter := metered.NewMeter(g.options.Limits, ctx.Err, "")
	functions := maps.Clone(g.functions)
	maps.Copy(functions, meter.Bounded(g.library))
	// Functions of the user win.
	maps.Copy(functions, g.options.Functions)
	functions["lookup"] = lookup.Disabled
	if !g.options.DisableLookup {
		functions["lookup"] = lookup.For(ctx)
	}
	return metered.NewScope(templates, g.parser, meter, functions), nil
}

func (g *Generator) renderFile(s *metered.Scope, name string, data map[string]any) (objects []client.Object, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%s: %w", name, &manifests.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	data = maps.Clone(data)
	data["Template"] = map[string]any{"Name": name, "BasePath": g.base}
	text, err := s.Execute(name, data)
	if err != nil {
		return nil, err
	}
	decoded, err := manifests.Decode(name+" (rendered)", []byte(text))
	for _, object := range decoded {
		objects = append(objects, object)
	}
	return objects, err
}

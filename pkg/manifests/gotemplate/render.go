// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
	"github.com/corbel-run/corbel/pkg/manifests/internal/metered"
)

// maxFailures limits how many files are reported that do not render.
const maxFailures = 10

// render renders all templates and hands over what they give. A mistake in one
// of them does not keep the others from being tried.
func (t *Texts) render(ctx context.Context, data map[string]any, take func(name, text string) error) error {
	s, err := t.scopeFor(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range t.rendered {
		text, err := t.renderOne(s, name, data)
		if err == nil {
			err = take(name, text)
		}
		if err != nil {
			errs = append(errs, err)
			if ctx.Err() != nil || len(errs) == maxFailures {
				break
			}
		}
	}
	return errors.Join(errs...)
}

// scopeFor returns the templates with functions that count for this rendering.
func (t *Texts) scopeFor(ctx context.Context) (*metered.Scope, error) {
	templates, err := t.templates.Clone()
	if err != nil {
		return nil, err
	}
	meter := metered.NewMeter(t.options.Limits, ctx.Err, "")
	functions := maps.Clone(t.functions)
	maps.Copy(functions, meter.Bounded(t.library))
	// Functions of the user win.
	maps.Copy(functions, t.options.Functions)
	functions["lookup"] = lookup.Disabled
	if !t.options.DisableLookup {
		functions["lookup"] = lookup.For(ctx)
	}
	return metered.NewScope(templates, t.parser, meter, functions), nil
}

func (t *Texts) renderOne(s *metered.Scope, name string, data map[string]any) (text string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%s: %w", name, &manifests.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	data = maps.Clone(data)
	data["Template"] = map[string]any{"Name": name, "BasePath": t.base}
	return s.Execute(name, data)
}

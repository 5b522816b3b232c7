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
	"github.com/corbel-run/corbel/pkg/manifests/internal/templates"
)

// maxFailures limits how many files are reported that do not render.
const maxFailures = 10

// render renders all templates and hands over what they give. A mistake in one
// of them does not keep the others from being tried.
func (t *Texts) render(ctx context.Context, data map[string]any, take func(name, text string) error) error {
	r, err := t.renderingFor(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range t.rendered {
		text, err := t.renderOne(r, name, data)
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

// renderingFor returns the templates with functions for this rendering.
func (t *Texts) renderingFor(ctx context.Context) (*templates.Rendering, error) {
	set, err := t.templates.Clone()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(functions)
	all["lookup"] = lookup.Disabled
	if !t.options.DisableLookup {
		all["lookup"] = lookup.For(ctx, t.options.Limits.WithDefaults().WorkBytes)
	}
	return templates.NewRendering(set, t.parser, all, templates.Options{
		Limits: t.options.Limits, Interrupted: ctx.Err, WholeNumbers: true, Functions: t.options.Functions,
	}), nil
}

func (t *Texts) renderOne(r *templates.Rendering, name string, data map[string]any) (text string, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("%s: %w", name, &manifests.PanicError{Value: value, Stack: debug.Stack()})
		}
	}()
	data = maps.Clone(data)
	data["Template"] = map[string]any{"Name": name, "BasePath": t.base}
	return r.Execute(name, data)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/manifests/internal/lookup"
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
	templates *templates.Set
	// rendered are the names of the templates that give texts.
	rendered []string
	base     string
	runner   *timeout.Runner
}

// NewTexts parses the templates, by their names. All of them share their definitions, and templates
// with a base name that starts with an underscore are not rendered. Base is .Template.BasePath in
// templates, and the name in errors. The error lists all mistakes, with name and line.
func NewTexts(base string, sources map[string]string, options Options) (*Texts, error) {
	var rendered []string
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		if !strings.HasPrefix(path.Base(name), "_") {
			rendered = append(rendered, name)
		}
	}
	return newTexts(base, sources, rendered, options)
}

// newTexts is NewTexts with a choice of the rendered templates.
func newTexts(base string, sources map[string]string, rendered []string, options Options) (*Texts, error) {
	t := &Texts{base: path.Clean(base), rendered: rendered, runner: timeout.New("templates in " + path.Clean(base))}
	var err error
	if t.options, err = options.complete(); err != nil {
		return nil, err
	}
	names := maps.Clone(functions)
	maps.Copy(names, t.options.Functions)
	t.parser = templates.NewParser(t.options.LeftDelimiter, t.options.RightDelimiter, names)
	t.templates = templates.NewSet(missingKey(t.options.Strict))
	used := map[string]string{}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(sources)) {
		text := strings.TrimPrefix(sources[name], "\ufeff")
		errs = append(errs, t.parser.Parse(t.templates, name, text, used))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return t, nil
}

// Render returns the outputs of the templates for the parameters, by the names of the templates.
// Its errors are like the errors of Generator.Generate.
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

// maxFailures limits how many files are reported that do not render.
const maxFailures = 10

// render renders all templates and passes on their outputs. It goes on after a mistake in one of
// them.
func (t *Texts) render(ctx context.Context, data map[string]any, emit func(name, text string) error) error {
	r, err := t.renderingFor(ctx)
	if err != nil {
		return err
	}
	var errs []error
	for _, name := range t.rendered {
		renders.NoteProgress(ctx, "template "+name)
		text, err := t.renderOne(r, name, data)
		if err == nil {
			err = emit(name, text)
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
		Random: func() { manifests.NoteRandom(ctx) }, Now: func() time.Time { return manifests.Now(ctx) },
	}), nil
}

func (t *Texts) renderOne(r *templates.Rendering, name string, data map[string]any) (string, error) {
	data = maps.Clone(data)
	data["Template"] = map[string]any{"Name": name, "BasePath": t.base}
	return r.Execute(name, data)
}

// dataFor returns the dot of templates. It is made anew for every rendering, as templates can
// change it.
func dataFor(ctx context.Context, namespace, name string, parameters types.Unstructurable) (map[string]any, error) {
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	known := manifests.FromContext(ctx)
	revision := max(known.Revision, 1)
	return map[string]any{
		"Values":    values,
		"Name":      name,
		"Namespace": namespace,
		"Release": map[string]any{
			"Name":      name,
			"Namespace": namespace,
			"Revision":  revision,
			"IsInstall": !known.Upgrade,
			"IsUpgrade": known.Upgrade,
			"Service":   cmp.Or(known.ReconcilerName, "corbel"),
		},
		"Component": componentFrom(known, revision),
	}, nil
}

// componentFrom describes the component; a fact that the context lacks is empty.
func componentFrom(known manifests.Context, revision int64) map[string]any {
	var name, namespace string
	labels, annotations := map[string]any{}, map[string]any{}
	if component := known.Component; component != nil {
		name, namespace = component.GetName(), component.GetNamespace()
		copyInto(labels, component.GetLabels())
		copyInto(annotations, component.GetAnnotations())
	}
	return map[string]any{
		"Name": name, "Namespace": namespace, "Digest": known.Digest, "Revision": revision,
		"Labels": labels, "Annotations": annotations,
	}
}

func copyInto(target map[string]any, source map[string]string) {
	for key, value := range source {
		target[key] = value
	}
}

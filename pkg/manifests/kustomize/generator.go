// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// maxResults and maxResultBytes limit the results that a generator keeps, which are
// those of the components that were rendered last.
const (
	maxResults     = 16
	maxResultBytes = 32 << 20
)

// Generator builds a kustomization. It may be used by several goroutines at once.
type Generator struct {
	err     error
	options Options
	folder  string
	input
	results *cache.Cache[[]*unstructured.Unstructured]
	runner  *timeout.Runner
}

// input is what New reads.
type input struct {
	tree    *tree
	ignored ignoreRules
	texts   *gotemplate.Texts
}

var _ manifests.Generator = &Generator{}

// New returns a generator that builds the kustomization in a folder of the file
// system ("." for its root). All files of the file system are read once, here,
// but for the folder .git; use fs.Sub to leave out what is not needed. The
// kustomization may refer to all of them, also above its folder.
//
// If options or files are wrong, the error lists all mistakes. The generator is
// usable even then: it returns the same error whenever it is called. So the
// caller has the choice to stop the operator, or to go on and let the mistake
// show up at the components.
func New(fsys fs.FS, folder string, options Options) (*Generator, error) {
	g := &Generator{
		options: options.complete(), folder: path.Clean(folder),
		results: cache.New[[]*unstructured.Unstructured](maxResults, maxResultBytes),
	}
	g.runner = timeout.New(g.description())
	g.input, g.err = timeout.Run(context.Background(), g.runner, g.options.Timeout, func(context.Context) (input, error) {
		return g.prepare(fsys)
	})
	return g, g.err
}

// description names the kustomization in messages.
func (g *Generator) description() string { return "kustomization in folder " + g.folder }

// prepare does not change the generator: if it takes too long, it is left behind.
func (g *Generator) prepare(fsys fs.FS) (in input, err error) {
	if !fs.ValidPath(g.folder) {
		return in, fmt.Errorf("folder %q: %w", g.folder, ErrOutside)
	}
	if in.tree, err = readTree(fsys, g.options); err != nil {
		return in, err
	}
	if !in.tree.folders[g.folder] {
		return in, fmt.Errorf("folder %q: %w", g.folder, in.tree.missing(g.folder))
	}
	if err := in.tree.irregular[g.options.IgnoreFile]; err != nil {
		return in, err
	}
	if in.ignored, err = parseIgnore(g.options.IgnoreFile, in.tree.files[g.options.IgnoreFile]); err != nil {
		return in, err
	}
	if g.options.Templates != nil {
		in.texts, err = parseTemplates(in.tree, g.folder, in.ignored, g.options.IgnoreFile, g.options.Templates)
		return in, err
	}
	// Without templates all is known already.
	_, err = in.checked(in.tree, g.folder, g.options.Limits)
	return in, err
}

// checked returns what to build, or nothing if there is nothing to build.
func (in input) checked(t *tree, folder string, limits Limits) (*plan, error) {
	complete, ok, err := t.withKustomization(folder, in.ignored)
	if err != nil {
		return nil, err
	}
	if !ok && in.texts == nil {
		return nil, fmt.Errorf("folder %q: %w", folder, errNoFiles)
	}
	if !ok {
		return nil, nil
	}
	return check(complete, folder, limits)
}

// Generate implements manifests.Generator. Builds that are not done in time end
// as a manifests.RenderTimeoutError, what exceeds a limit as a LimitError, and
// what a kustomization may not refer to as a ReferenceError. Mistakes in the
// result are manifests.DecodeErrors.
func (g *Generator) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if g.err != nil {
		return nil, g.err
	}
	return timeout.Run(ctx, g.runner, g.options.Timeout, func(ctx context.Context) ([]client.Object, error) {
		var texts map[string]string
		if g.texts != nil {
			var err error
			if texts, err = g.texts.Render(ctx, namespace, name, parameters); err != nil {
				return nil, err
			}
		}
		built, err := g.build(ctx, texts)
		if err != nil {
			return nil, err
		}
		objects := make([]client.Object, len(built))
		origins := sources{}
		if manifests.WantsOrigins(ctx) {
			origins = sourcesOf(texts)
		}
		for i, object := range built {
			objects[i] = object.DeepCopy()
			manifests.NoteOrigin(ctx, objects[i], cmp.Or(origins.of(object), g.description()))
		}
		return objects, nil
	})
}

// build returns objects that must not be changed.
func (g *Generator) build(ctx context.Context, texts map[string]string) ([]*unstructured.Unstructured, error) {
	key := cache.KeyOf(texts)
	if built, ok := g.results.Get(key); ok {
		return built, nil
	}
	t := g.tree
	if g.texts != nil {
		t = t.rendered(texts, g.options.Templates)
	}
	plan, err := g.checked(t, g.folder, g.options.Limits)
	if err != nil || plan == nil {
		return nil, err
	}
	built, size, err := build(ctx, plan, g.options.Limits)
	if err != nil {
		return nil, err
	}
	g.results.Put(key, built, size)
	return built, nil
}

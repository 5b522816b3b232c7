// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"cmp"
	"context"
	"fmt"
	"io/fs"
	"path"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

// maxResults and maxResultBytes limit the results that a generator keeps, which are the results for
// the components that were rendered last.
const (
	maxResults     = 16
	maxResultBytes = 32 << 20
)

// generator builds a kustomization. It may be used by several goroutines at once.
type generator struct {
	sum
	err     error
	options Options
	folder  string
	input
	results *cache.Cache[[]*unstructured.Unstructured]
	runner  *timeout.Runner
}

// input is the input of New.
type input struct {
	tree    *tree
	ignored ignoreRules
	texts   *gotemplate.Texts
}

var _ manifests.Generator = &generator{}

type sum = digest.Sum

// New returns a generator that builds the kustomization in a folder of the file system ("." for its
// root). All files of the file system are read once, here, but for the folder .git; use fs.Sub to
// leave out files that are not needed. The kustomization may refer to all of them, also above its
// folder.
//
// If options are invalid, or references lead to nothing or to a refused place, the error lists all
// these mistakes; further mistakes are found by the build. The generator is usable even then: it
// returns the same error whenever it is called. So the caller has the choice to stop the operator,
// or to go on and let the mistake show up at the components.
func New(fsys fs.FS, folder string, options Options) (manifests.Generator, error) {
	g := &generator{
		options: options.complete(), folder: path.Clean(folder),
		results: cache.New[[]*unstructured.Unstructured](maxResults, maxResultBytes),
	}
	g.runner = timeout.New(g.description())
	g.input, g.err = timeout.Run(context.Background(), g.runner, g.options.Timeout, func(context.Context) (input, error) {
		return g.prepare(fsys)
	})
	if g.tree != nil {
		g.sum = digest.OfValues("kustomize", g.tree.sum, g.folder, options)
	}
	return g, g.err
}

// description names the kustomization in messages.
func (g *generator) description() string { return "kustomization in folder " + g.folder }

// prepare does not change the generator: if it takes too long, it goes on without a reader.
func (g *generator) prepare(fsys fs.FS) (in input, err error) {
	if !fs.ValidPath(g.folder) {
		return in, fmt.Errorf("folder %q: %w", g.folder, errOutside)
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

// checked returns the plan of the build, or nil if there is nothing to build.
func (in input) checked(t *tree, folder string, limits Limits) (*checkedBuild, error) {
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

// Source names the kind of the generator.
func (g *generator) Source() v1alpha1.Source { return v1alpha1.Source{Generator: "kustomize"} }

func (g *generator) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
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
		if renders.WantsOrigins(ctx) {
			origins = sourcesOf(texts)
		}
		for i, object := range built {
			objects[i] = object.DeepCopy()
			renders.NoteOrigin(ctx, objects[i], cmp.Or(origins.of(object), g.description()))
		}
		return objects, nil
	})
}

// build returns objects that must not be changed.
func (g *generator) build(ctx context.Context, texts map[string]string) ([]*unstructured.Unstructured, error) {
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

// Options are the options of New. The zero value builds the files as they are, without templates.
type Options struct {
	// Templates makes files Go templates.
	//
	// Default: nil; no file is a template
	Templates *Templates
	// Decryptor decrypts the files when they are read.
	//
	// Default: none
	Decryptor manifests.Decryptor
	// IgnoreFile is the name of the ignore file in the root. It need not exist.
	//
	// Default: ".corbelignore"
	IgnoreFile string
	// FollowSymlinks reads the targets of symbolic links to files, see manifests.FollowSymlinks. Another link is
	// an error only if a kustomization refers to it.
	//
	// Default: false
	FollowSymlinks bool
	// Timeout limits one rendering; the deadline of the context counts as well.
	//
	// Default: 10 minutes
	Timeout time.Duration
	// Limits are the limits of one rendering.
	//
	// Default: those of Limits
	Limits Limits
}

// Templates selects the files that are templates, and sets how they are rendered. The options of
// package gotemplate hold delimiters, functions and limits.
type Templates struct {
	gotemplate.Options
	// Suffix restricts the templates to files with names that end like this, such as ".tmpl".
	//
	// Default: empty: all text files are templates
	Suffix string
	// TrimSuffix removes the suffix from the name of the rendered file.
	//
	// Default: false
	TrimSuffix bool
}

// Limits keep a kustomization from taking all memory. A limit that is not
// greater than 0 has its default.
type Limits struct {
	// FileBytes limits the size of each file.
	//
	// Unit: bytes
	// Default: 16 MiB
	FileBytes int64
	// TotalBytes limits the size of all files together, and of each file with expanded aliases.
	//
	// Default: 64 MiB
	// Unit: bytes
	TotalBytes int64
	// Kustomizations limits how many kustomizations a build goes through, with repetitions.
	//
	// Default: 1,000
	// Unit: kustomizations
	Kustomizations int
	// Values limits the values that the aliases of a YAML file expand to.
	//
	// Default: 1,000,000
	// Unit: values
	Values int
	// OutputBytes limits the result.
	//
	// Unit: bytes
	// Default: 32 MiB
	OutputBytes int64
}

const (
	defaultTimeout    = 10 * time.Minute
	defaultIgnoreFile = ".corbelignore"
	// maxNesting limits how deep kustomizations refer to each other.
	//
	// Unit: levels
	// Limit: the depth to which kustomizations refer to each other.
	maxNesting = 64
)

func (o Options) complete() Options {
	if o.IgnoreFile == "" {
		o.IgnoreFile = defaultIgnoreFile
	}
	o.Timeout = files.PositiveOr(o.Timeout, defaultTimeout)
	o.Limits.TotalBytes = files.PositiveOr(o.Limits.TotalBytes, files.DefaultMaxTotalSize)
	o.Limits.Kustomizations = files.PositiveOr(o.Limits.Kustomizations, 1000)
	o.Limits.Values = files.PositiveOr(o.Limits.Values, 1_000_000)
	o.Limits.OutputBytes = files.PositiveOr(o.Limits.OutputBytes, 32<<20)
	return o
}

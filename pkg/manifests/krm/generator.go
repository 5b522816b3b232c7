// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/convert"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/types"
)

// generator is a function that makes objects. It may be used by several
// goroutines at once.
type generator struct {
	sum
	function Function
	err      error
}

var _ manifests.Generator = &generator{}

// NewGenerator returns a generator that runs the function. If there is a mistake
// in the function, the generator is usable nevertheless: it returns the same
// error whenever it is called.
func NewGenerator(f Function) (manifests.Generator, error) {
	g := &generator{}
	g.function, g.sum, g.err = f.complete()
	return g, g.err
}

// Source names the kind of the generator.
func (g *generator) Source() v1alpha1.Source { return v1alpha1.Source{Generator: "krm"} }

func (g *generator) Generate(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if g.err != nil {
		return nil, g.err
	}
	values, err := convert.Values(parameters)
	if err != nil {
		return nil, err
	}
	return g.function.apply(ctx, namespace, name, values, nil)
}

// transformer is a function that changes objects. It may be used by several
// goroutines at once.
type transformer struct {
	sum
	function Function
	err      error
}

var _ manifests.ObjectTransformer = &transformer{}

// NewTransformer returns a transformer for manifests.Transform that runs the
// function. If there is a mistake in the function, the transformer is usable
// nevertheless: it returns the same error whenever it is called.
func NewTransformer(f Function) (manifests.ObjectTransformer, error) {
	t := &transformer{}
	t.function, t.sum, t.err = f.complete()
	return t, t.err
}

// TransformObjects implements manifests.ObjectTransformer. It fails as
// Generator.Generate does.
func (t *transformer) TransformObjects(namespace, name string, objects []client.Object) ([]client.Object, error) {
	if t.err != nil {
		return nil, t.err
	}
	plain, err := convert.ToUnstructuredList(objects)
	if err != nil {
		return nil, err
	}
	return t.function.apply(context.Background(), namespace, name, nil, plain)
}

// apply runs the function on objects.
func (f Function) apply(ctx context.Context, namespace, name string, parameters map[string]any, objects []*unstructured.Unstructured) ([]client.Object, error) {
	config, err := f.Config(namespace, name, parameters)
	if err != nil {
		return nil, fmt.Errorf("%s: its configuration: %w", f.label(), err)
	}
	input, err := encode(config, objects)
	if err != nil {
		return nil, fmt.Errorf("%s: its input: %w", f.label(), err)
	}
	output, err := f.run(ctx, input)
	if err != nil {
		return nil, err
	}
	given, err := parse(output)
	if err != nil {
		return nil, confidential.At(f.label(), fmt.Errorf("its output: %w", err))
	}
	if failed := failures(given.results); len(failed) > 0 {
		return nil, confidential.At(f.label(), errors.New(listed(failed)))
	}
	if f.Observe != nil && len(given.results) > 0 {
		var texts []string
		for _, r := range given.results {
			texts = append(texts, r.String())
		}
		f.Observe(namespace, name, texts)
	}
	for _, object := range given.objects {
		renders.NoteOrigin(ctx, object, f.label())
	}
	return convert.ToObjects(given.objects), nil
}

// Function is a program that is a KRM function.
type Function struct {
	// Path is the absolute path of the program.
	//
	// Default: none; it is required
	Path string
	// Args are its arguments.
	//
	// Default: none
	Args []string
	// Environment are its environment variables, as KEY=value.
	//
	// Default: none
	Environment []string
	// Directory is its working directory.
	//
	// Default: "/"
	Directory string
	// Config returns the functionConfig, a map of JSON types. The parameters are nil for a transformer, and must
	// not be changed.
	//
	// Default: a functionConfig of the kind that the package describes
	Config func(namespace, name string, parameters map[string]any) (map[string]any, error)
	// Observe is called with the results that do not fail the rendering.
	//
	// Default: none
	Observe func(namespace, name string, results []string)
	// Timeout limits one run; the deadline of the context counts as well.
	//
	// Default: 2 minutes
	Timeout time.Duration
	// OutputBytes limits the standard output.
	//
	// Unit: bytes
	// Default: 32 MiB
	OutputBytes int64
}

const (
	defaultTimeout     = 2 * time.Minute
	defaultOutputBytes = 32 << 20
	// maxComplaint limits the part of the standard error that is kept, from its end.
	maxComplaint = 1 << 10
)

type sum = digest.Sum

// complete fills in the defaults, and checks the rest. The digest covers the program, wherever it
// is, and the options. The values of variables, which may be secret, do not count: the digest
// stands in the status of components.
func (f Function) complete() (Function, sum, error) {
	given := f
	given.Path, given.Environment = "", nil
	for _, variable := range f.Environment {
		name, _, _ := strings.Cut(variable, "=")
		given.Environment = append(given.Environment, name)
	}
	f.Timeout, f.OutputBytes = files.PositiveOr(f.Timeout, defaultTimeout), files.PositiveOr(f.OutputBytes, defaultOutputBytes)
	f.Directory = cmp.Or(f.Directory, "/")
	if f.Config == nil {
		f.Config = defaultConfig
	}
	f.Args, f.Environment = slices.Clone(f.Args), slices.Clone(f.Environment)
	var errs []error
	if !filepath.IsAbs(f.Path) {
		errs = append(errs, fmt.Errorf("function %q: the path must be absolute", f.Path))
	} else if info, err := os.Stat(f.Path); err != nil {
		errs = append(errs, fmt.Errorf("function %s: %w", f.Path, err))
	} else if !info.Mode().IsRegular() || info.Mode()&0o111 == 0 {
		errs = append(errs, fmt.Errorf("function %s: it is no program that may be run", f.Path))
	}
	for i, variable := range f.Environment {
		if !strings.Contains(variable, "=") {
			errs = append(errs, fmt.Errorf("function %s: environment variable %d of %d: want KEY=value", f.Path, i+1, len(f.Environment)))
		}
	}
	if len(errs) > 0 {
		return f, "", errors.Join(errs...)
	}
	program, _ := os.ReadFile(f.Path) // a program that may only be run counts as empty
	return f, digest.OfValues("krm", string(program), given), nil
}

// label is how errors call the function. Arguments may be long, or secret.
func (f Function) label() string { return "function " + f.Path }

func defaultConfig(namespace, name string, parameters map[string]any) (map[string]any, error) {
	config := map[string]any{
		"apiVersion": "corbel.run/v1alpha1",
		"kind":       "Parameters",
		"metadata":   map[string]any{"name": name, "namespace": namespace},
	}
	if parameters != nil {
		config["spec"] = parameters
	}
	return config, nil
}

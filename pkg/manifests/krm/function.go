// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// Function is a program that is a KRM function.
type Function struct {
	// Path is the absolute path of the program.
	Path string
	// Args are its arguments.
	Args []string
	// Environment are its environment variables, as KEY=value; none by default.
	Environment []string
	// Directory is its working directory, by default "/".
	Directory string
	// Config returns the functionConfig, which is a map of JSON types. The
	// parameters are nil for a transformer, and must not be changed. See the
	// package for the default.
	Config func(namespace, name string, parameters map[string]any) (map[string]any, error)
	// Observe is called with the results that do not fail the rendering.
	Observe func(namespace, name string, results []Result)
	// Timeout limits one run, by default 10 s; the deadline of the context
	// counts as well.
	Timeout time.Duration
	// OutputBytes limits the standard output, by default 32 MiB.
	OutputBytes int64
}

const (
	defaultTimeout     = 10 * time.Second
	defaultOutputBytes = 32 << 20
	// maxComplaint limits what is kept of the standard error, from its end.
	maxComplaint = 1 << 10
)

// complete fills in the defaults, and checks the rest.
func (f Function) complete() (Function, error) {
	if f.Timeout <= 0 {
		f.Timeout = defaultTimeout
	}
	if f.OutputBytes <= 0 {
		f.OutputBytes = defaultOutputBytes
	}
	if f.Directory == "" {
		f.Directory = "/"
	}
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
	return f, errors.Join(errs...)
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
		config["spec"] = manifests.MergeMaps(nil, parameters)
	}
	return config, nil
}

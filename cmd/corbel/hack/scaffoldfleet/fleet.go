// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/template"
	"time"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold/values"
)

// fleet makes the projects packages of one module. To link a binary takes longer than all else that a project
// needs, so the tests of all projects are linked into one.
type fleet struct {
	work, library string
	spec          scaffold.SpecMode
	subcharts     trees
	projects      []*project
}

// project is the operator of a chart.
type project struct {
	chart
	folder string
	// made, role and golden are "" as long as they were not tried, "ok", or why not.
	made, role, golden string
	// optional are the kinds of the role that the chart holds, and renders with none of its values.
	optional      []string
	leaves, typed int
	// tests are the results of the tests on a control plane, by name.
	tests           map[string]verdict
	refused, unused int
}

// Package is the name of the project's folder and of the last element of its package.
func (p *project) Package() string {
	return strings.ToLower(strings.NewReplacer("/", "-", "_", "-", ".", "-").Replace(p.String()))
}

// liveTests are the tests that need a control plane, in the order in which they run.
var liveTests = [...]string{"rights", "crashes", "faults"}

const (
	module = "fleet.example.com"
	// patience is how long a live test of a project may take: a chart with many objects has many points of crashes.
	patience = 40 * time.Minute
	// buildPatience is how long it may take to build all projects.
	buildPatience = 2 * time.Hour
)

// makeAll makes all projects, and compares their roles with what their charts render.
func (f *fleet) makeAll(ctx context.Context) error {
	for _, p := range f.projects {
		p.folder = filepath.Join(f.work, p.Package())
		if p.made = describe(f.make(ctx, p)); p.made == "ok" {
			optional, err := p.compareRole(ctx)
			p.role, p.optional = describe(err), optional
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	return nil
}

// golden compiles all projects, and lets them compare their golden files with what they render.
func (f *fleet) golden(ctx context.Context) error {
	if err := f.assemble(ctx); err != nil {
		return err
	}
	if err := f.compile(ctx); err != nil {
		return err
	}
	if err := f.link(ctx); err != nil {
		return err
	}
	output, _ := f.command(ctx, f.work, f.binary(), "-test.v", "-test.run", "^TestGolden$")
	results := verdictsOf(string(output))
	for _, p := range f.compiled() {
		p.golden = firstSet(results["TestGolden/"+p.Package()].outcome, "the test did not run: "+reason(telling(string(output))))
	}
	return nil
}

// make makes a project, and leaves to the fleet what the toolchain does.
func (f *fleet) make(ctx context.Context, p *project) error {
	text, _ := os.ReadFile(filepath.Join(p.chart.folder, "values.yaml"))
	schema, _ := os.ReadFile(filepath.Join(p.chart.folder, "values.schema.json"))
	if root, _, err := values.Learn(values.Source{Values: text, Schema: schema}); err == nil {
		p.leaves, p.typed = values.Leaves(root)
	}
	if _, err := os.Stat(filepath.Join(p.folder, "operator_tests.go")); err == nil {
		return nil // an earlier run was interrupted
	}
	o := scaffold.Options{Kind: "Sample", Group: p.Package() + ".example.com", Module: module + "/" + p.Package(), Spec: f.spec}
	source := scaffold.Source{Form: scaffold.FormChart, Path: p.chart.folder}
	if f.subcharts.folder != "" {
		source.Repositories = &f.subcharts
	}
	corbel := scaffold.Corbel{Version: "v0.0.0", Folder: f.library}
	if _, err := scaffold.Create(ctx, o, source, corbel, p.folder, scaffold.Toolchain{Go: "true"}); err != nil {
		return err
	}
	goMod, err := os.ReadFile(filepath.Join(p.folder, "go.mod"))
	if err != nil {
		return err
	}
	goMod = bytes.Replace(goMod, []byte("module "+o.Module), []byte("module "+module), 1)
	return errors.Join(
		os.WriteFile(filepath.Join(f.work, "go.mod"), goMod, 0o644),
		os.Remove(filepath.Join(p.folder, "go.mod")),
		library(filepath.Join(p.folder, "main.go"), filepath.Join(p.folder, "main.go")),
		library(filepath.Join(p.folder, "operator_test.go"), filepath.Join(p.folder, "operator_tests.go")),
	)
}

// library makes a file of a program one of a package that can be imported.
func library(from, to string) error {
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return errors.Join(os.Remove(from), os.WriteFile(to, bytes.Replace(text, []byte("package main"), []byte("package project"), 1), 0o644))
}

// fleetTest runs the tests of all projects.
var fleetTest = template.Must(template.New("").Parse(`package fleet

import (
	"testing"
{{ range $n, $p := . }}
	p{{ $n }} "fleet.example.com/{{ $p.Package }}"
{{- end }}
)

func TestMain(m *testing.M) { p0.TestMain(m) }

func TestGolden(t *testing.T) {
{{- range $n, $p := . }}
	t.Run("{{ $p.Package }}", func(t *testing.T) { t.Chdir("{{ $p.Package }}"); p{{ $n }}.TestTheGoldenFilesAreRendered(t) })
{{- end }}
}

func TestLive(t *testing.T) {
{{- range $n, $p := . }}
	t.Run("{{ $p.Package }}", func(t *testing.T) {
		t.Chdir("{{ $p.Package }}")
		t.Run("rights", p{{ $n }}.TestTheOperatorHasTheRightsThatItNeeds)
		t.Run("crashes", p{{ $n }}.TestTheOperatorSurvivesCrashes)
		t.Run("faults", p{{ $n }}.TestTheOperatorSurvivesFaults)
	})
{{- end }}
}
`))

// assemble resolves the modules, and generates DeepCopy and the CustomResourceDefinitions.
func (f *fleet) assemble(ctx context.Context) error {
	if _, err := f.command(ctx, f.work, "go", "mod", "tidy", "-e"); err != nil {
		return err
	}
	generator := "sigs.k8s.io/controller-tools/cmd/controller-gen@" + scaffold.ControllerGen
	// Packages by their import paths are loaded together, and what they import is read once; folders are loaded one by one.
	arguments := []string{"run", generator, "object", "crd:maxDescLen=200", "output:crd:dir=definitions"}
	for _, p := range f.compiled() {
		arguments = append(arguments, "paths="+module+"/"+p.Package()+"/api/v1alpha1")
	}
	if _, err := f.command(ctx, f.work, "go", arguments...); err != nil {
		return err
	}
	for _, p := range f.projects {
		if p.made != "ok" {
			continue
		}
		name := p.Package() + ".example.com_samples.yaml"
		text, err := os.ReadFile(filepath.Join(f.work, "definitions", name))
		if err == nil {
			err = errors.Join(os.MkdirAll(filepath.Join(p.folder, "deploy", "files"), 0o755), os.WriteFile(filepath.Join(p.folder, "deploy", "files", name), text, 0o644))
		}
		if err == nil {
			err = scaffold.CheckDefinitions(p.folder)
		}
		p.made = describe(err)
	}
	return nil
}

// compile compiles all projects.
func (f *fleet) compile(ctx context.Context) error {
	output, err := f.command(ctx, f.work, "go", "build", "./...")
	if ctx.Err() != nil {
		return ctx.Err()
	}
	for _, p := range f.compiled() {
		if _, problem, found := strings.Cut(string(output), module+"/"+p.Package()); found && err != nil {
			p.golden = reason("it does not compile: " + problem)
		}
	}
	return nil
}

// compiled are the projects without a mistake so far.
func (f *fleet) compiled() []*project {
	return slices.DeleteFunc(slices.Clone(f.projects), func(p *project) bool { return p.made != "ok" || p.golden != "" && p.golden != "ok" })
}

func (f *fleet) binary() string { return filepath.Join(f.work, "fleet.test") }

// link links the tests.
func (f *fleet) link(ctx context.Context) error {
	var text bytes.Buffer
	if err := fleetTest.Execute(&text, f.compiled()); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(f.work, "fleet_test.go"), text.Bytes(), 0o644); err != nil {
		return err
	}
	_, err := f.command(ctx, f.work, "go", "test", "-c", "-ldflags=-s -w", "-o", f.binary(), ".")
	return err
}

// live runs a test of a project on a control plane of its own.
func (f *fleet) live(ctx context.Context, p *project, test string) {
	if p.golden != "ok" || ctx.Err() != nil {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	output, err := f.command(ctx, f.work, f.binary(), "-test.v", "-test.run", "^TestLive$/^"+regexp.QuoteMeta(p.Package())+"$/^"+test+"$")
	_ = os.WriteFile(filepath.Join(f.work, p.Package()+"-"+test+".log"), output, 0o644)
	v, ran := verdictsOf(string(output))["TestLive/"+p.Package()+"/"+test]
	if !ran {
		v.outcome = reason(fmt.Sprintf("did not end within %s: %v", patience, err))
	}
	if p.tests == nil {
		p.tests = map[string]verdict{}
	}
	p.tests[test] = v
	if test == "rights" {
		p.refused, p.unused = rights(string(output))
	}
}

// command runs a command in a folder.
func (f *fleet) command(ctx context.Context, folder, program string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, buildPatience)
	defer cancel()
	c := exec.CommandContext(ctx, program, args...)
	c.Dir, c.Env = folder, append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	c.Cancel, c.WaitDelay = func() error { return c.Process.Signal(os.Interrupt) }, 30*time.Second
	output, err := c.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", program, strings.Join(args, " "), err, telling(string(output)))
	}
	return output, err
}

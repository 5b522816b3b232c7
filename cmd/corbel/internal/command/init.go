// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corbel-run/corbel/cmd/corbel/internal/cli"
	"github.com/corbel-run/corbel/cmd/corbel/internal/command/remote"
	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

// initFlags are the flags of init.
type initFlags struct {
	options                scaffold.Options
	spec                   string
	chart, kustomize, yaml string
	operator               string
	goCode, update         bool
	library                string
	remote                 remote.Client
}

const initExample = `  corbel init shop-operator --from-chart ./shop --kind Shop --group shop.example.com
  corbel init shop-operator --from-chart oci://registry.example.com/charts/shop:1.2.0 --kind Shop --group shop.example.com
  corbel init shop-operator --from-operator ./shop-helm-operator
  corbel init shop-operator --from-kustomize ./config/default --kind Shop --group shop.example.com
  corbel init --update --from-chart shop-1.3.0.tgz`

const initHelp = `Make the project of an operator in FOLDER, which must be new or empty; after an error nothing is left of it.

Sub-charts that the folder charts of a Helm chart lacks are fetched, in the versions of its lock file or else the newest
ones that fit. They are on record in corbel.yaml, so that an update takes the same ones as long as they fit.

With --update, take a newer source or a newer version of Corbel over into a project. Files that the author has not
changed are replaced or removed, and what both sides have changed is merged as git does. Files that the author has
removed stay removed.

The exit code is 1 if an update has conflicts: the files with conflicts are named, and have the marks of git in them.`

// initCommand returns the command that makes a project.
func initCommand() *cobra.Command {
	var f initFlags
	command := &cobra.Command{
		Use: "init FOLDER", Short: "Make the project of an operator", Long: initHelp, Example: initExample, Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			ofKind, reason := []string{"kind", "group", "version", "spec", "field", "impersonate", "patches"}, ""
			switch {
			case f.update:
				ofKind, reason = append(ofKind, "module", "namespaced", "go"), "cannot be changed by --update: the project has it on record in corbel.yaml"
			case f.operator != "":
				reason = "is not for --from-operator: the kinds stay as the Helm operator has them"
			default:
				ofKind = nil
			}
			var mistakes []error
			for _, name := range ofKind {
				if c.Flags().Changed(name) {
					mistakes = append(mistakes, fmt.Errorf("--%s %s", name, reason))
				}
			}
			if len(mistakes) > 0 {
				return errors.Join(mistakes...)
			}
			return f.run(c.Context(), c.ErrOrStderr(), args)
		},
	}
	flags := command.Flags()
	flags.StringVar(&f.chart, "from-chart", "", "a Helm chart: a folder, a packed chart (*.tgz), oci://REGISTRY/PATH[:VERSION][@DIGEST], by default the newest release, or https://…")
	flags.StringVar(&f.kustomize, "from-kustomize", "", "a folder with a kustomization; the files that it refers to are copied, from its git repository, or without one from the current folder")
	flags.StringVar(&f.yaml, "from-yaml", "", "a folder with manifests, which may be Go templates")
	flags.StringVar(&f.operator, "from-operator", "", "the folder of a Helm operator of operator-sdk, with watches.yaml, helm-charts and config: the project has its kinds and charts")
	flags.BoolVar(&f.goCode, "go", false, "a generator in Go")
	flags.StringVar(&f.options.Kind, "kind", "", "the kind of the component, such as Shop")
	flags.StringVar(&f.options.Group, "group", "", "the API group of the component, such as shop.example.com")
	flags.StringVar(&f.options.Version, "version", "v1alpha1", "the API version of the component")
	flags.StringVar(&f.options.Module, "module", "", "the Go module; by default GROUP/FOLDER")
	flags.StringVar(&f.spec, "spec", "curated", "which values of a chart are typed: curated (those that users need most), full, or values (none)")
	flags.StringSliceVar(&f.options.Fields, "field", nil, "the values to type, in place of those that curated chooses, such as replicaCount,image.tag")
	flags.BoolVar(&f.options.Namespaced, "namespaced", false, "give the operator rights in its own namespace only")
	flags.BoolVar(&f.options.Impersonate, "impersonate", false, "let the service account "+scaffold.Deployer+" in the namespace of each component write its objects; the operator itself has no rights to them")
	flags.BoolVar(&f.options.Patches, "patches", false, "add the field patches to the spec although the operator writes roles or bindings, by which users could give themselves any right")
	flags.BoolVar(&f.update, "update", false, "take over a newer source, or a newer version of Corbel, into the project in FOLDER, by default the current one")
	flags.BoolVar(&f.remote.PlainHTTP, "plain-http", false, "allow servers of charts and sub-charts without TLS")
	flags.StringVar(&f.library, "corbel", "", "a checkout of Corbel that go.mod refers to, in place of a release")
	return command
}

// run makes or updates a project.
func (f *initFlags) run(ctx context.Context, progress io.Writer, args []string) error {
	library, err := findLibrary(f.library)
	if err != nil {
		return err
	}
	tools := scaffold.Toolchain{Progress: func(what string) { fmt.Fprintln(progress, "•", what) }}
	source, err := f.source()
	if len(args) == 0 && !f.update {
		err = errors.Join(errors.New("FOLDER is missing: the folder of the project, whose last element is the name of the operator"), err)
	}
	if err != nil {
		return err
	}
	if remote.IsRemote(source.Path) {
		temporary, err := os.MkdirTemp("", "corbel-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		if source, err = f.fetch(ctx, progress, source, temporary); err != nil {
			return err
		}
	}
	source.Repositories = &remote.Repositories{Client: f.remote}
	f.options.Spec = scaffold.SpecMode(f.spec)
	if f.update {
		folder := "."
		if len(args) > 0 {
			folder = args[0]
		}
		report, err := scaffold.Update(ctx, folder, source, library, tools)
		if err != nil {
			return err
		}
		return tellUpdate(progress, report)
	}
	report, err := scaffold.Create(ctx, f.options, source, library, args[0], tools)
	if err != nil {
		return err
	}
	tellProject(progress, args[0], report)
	return nil
}

// fetch fetches a chart into a folder.
func (f *initFlags) fetch(ctx context.Context, progress io.Writer, source scaffold.Source, folder string) (scaffold.Source, error) {
	fmt.Fprintln(progress, "• fetch the chart")
	chart, err := f.remote.Fetch(ctx, source.Path)
	if err != nil {
		return source, err
	}
	source.Path, source.Origin, source.Digest = filepath.Join(folder, "chart.tgz"), chart.Origin, chart.Digest
	fmt.Fprintf(progress, "  %s, %s\n", chart.Origin, chart.Digest)
	return source, os.WriteFile(source.Path, chart.Data, 0o600)
}

// source returns the source that the flags name; an update needs none.
func (f *initFlags) source() (source scaffold.Source, err error) {
	count := 0
	for _, named := range []scaffold.Source{
		{Form: scaffold.FormChart, Path: f.chart}, {Form: scaffold.FormKustomize, Path: f.kustomize}, {Form: scaffold.FormYAML, Path: f.yaml},
		{Form: scaffold.FormOperator, Path: f.operator},
	} {
		if named.Path != "" {
			source = named
			count++
		}
	}
	if f.goCode {
		source = scaffold.Source{Form: scaffold.FormGo}
		count++
	}
	switch {
	case f.update && f.operator != "":
		return source, errors.New("--from-operator makes a new project: --update --from-chart takes a newer chart over")
	case f.update && count == 0:
		return source, nil
	case count != 1:
		return source, errors.New("name one source: --from-chart, --from-kustomize, --from-yaml, --from-operator or --go")
	case source.Form != scaffold.FormChart && remote.IsRemote(source.Path):
		return source, fmt.Errorf("--from-%s %s: only charts are fetched; name a folder", source.Form, source.Path)
	}
	return source, nil
}

// tellProject says what was made.
func tellProject(out io.Writer, folder string, report scaffold.Report) {
	for _, note := range report.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	fmt.Fprintf(out, "%s has these files, besides its source and what is generated:\n", folder)
	byFolder := map[string][]string{}
	for _, name := range report.Files {
		byFolder[path.Dir(name)] = append(byFolder[path.Dir(name)], path.Base(name))
	}
	for _, in := range slices.Sorted(maps.Keys(byFolder)) {
		fmt.Fprintf(out, "  %-20s %s\n", in, strings.Join(byFolder[in], ", "))
	}
	fmt.Fprintf(out, "next: cd %s && make run\n", filepath.Clean(folder))
}

// tellUpdate says what an update has changed. Conflicts are an error.
func tellUpdate(out io.Writer, report scaffold.Report) error {
	for _, note := range report.Notes {
		fmt.Fprintln(out, "note:", note)
	}
	for _, name := range report.Files {
		if !slices.Contains(report.Conflicts, name) {
			fmt.Fprintln(out, "changed:", name)
		}
	}
	for _, name := range report.Conflicts {
		fmt.Fprintln(out, "conflict:", name)
	}
	switch {
	case len(report.Conflicts) > 0:
		fmt.Fprintln(out, "next: resolve the conflicts, then make generate golden test")
		return &cli.ExitError{Code: cli.CodeNo, Err: errors.New("the update has conflicts")}
	case len(report.Files) == 0:
		fmt.Fprintln(out, "nothing has changed")
	default:
		fmt.Fprintln(out, "next: look at the difference, then make golden test")
	}
	return nil
}

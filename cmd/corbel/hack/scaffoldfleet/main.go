// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Scaffoldfleet makes an operator of each Helm chart in a folder, and prints a table of how far each comes: the
// project is made, its role has no kind that is never applied, it compiles, and renders its golden file again; with
// -rights N, -crashes N and -faults N, these tests of N of them, drawn by the hash of their names, pass on a control
// plane. The charts are folders in the folder, or in folders of repositories.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"

	"github.com/corbel-run/corbel/cmd/corbel/internal/scaffold"
)

func main() {
	charts := flag.String("charts", "", "the folder of the charts, or of repositories of charts")
	subcharts := flag.String("trees", "", "a folder of git repositories that have the sub-charts which charts lack, each named by a part of the address of a chart repository; by default nothing has them")
	work := flag.String("work", "", "a folder for the projects, which is kept, and in which an interrupted run goes on; by default one that is removed")
	spec := flag.String("spec", string(scaffold.SpecCurated), "which values are typed: curated, full or values")
	var counts [len(liveTests)]int
	for n, test := range liveTests {
		flag.IntVar(&counts[n], test, 0, "of how many of them the test of "+test+" runs, on a control plane of its own")
	}
	roles := flag.Bool("roles", false, "end when the roles are compared: nothing is compiled")
	limit := flag.Int("limit", 0, "how many charts are taken, drawn by the hash of their names; 0 means all")
	only := flag.String("only", "", "charts, as repository/name, separated by commas; by default all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *charts, *subcharts, *work, scaffold.SpecMode(*spec), *roles, counts, *limit, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, folder, subcharts, work string, spec scaffold.SpecMode, roles bool, counts [len(liveTests)]int, limit int, only string) error {
	library, err := os.Getwd()
	if err != nil {
		return err
	}
	charts, err := find(folder)
	if err != nil {
		return err
	}
	if only != "" {
		charts = slices.DeleteFunc(charts, func(c chart) bool { return !slices.Contains(strings.Split(only, ","), c.String()) })
	}
	if limit > 0 {
		charts = charts[:min(limit, len(charts))]
	}
	if len(charts) == 0 {
		return fmt.Errorf("there are no charts in %q: name a folder of charts by -charts", folder)
	}
	if work == "" {
		if work, err = os.MkdirTemp("", "scaffoldfleet-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	f := &fleet{work: work, library: library, spec: spec, subcharts: trees{subcharts, map[string][]tree{}}}
	for _, c := range charts {
		f.projects = append(f.projects, &project{chart: c})
	}
	if err := f.makeAll(ctx); err != nil {
		return err
	}
	if roles {
		fmt.Println(table(f.projects))
		return nil
	}
	if err := f.golden(ctx); err != nil {
		return err
	}
	for n, test := range liveTests {
		for _, p := range f.projects[:min(counts[n], len(f.projects))] {
			f.live(ctx, p, test)
			fmt.Fprintln(os.Stderr, p.liveRow())
		}
	}
	fmt.Println(table(f.projects))
	return ctx.Err()
}

// chart is a Helm chart in a folder.
type chart struct {
	repository, name, folder string
}

// String names the chart.
func (c chart) String() string { return strings.TrimPrefix(c.repository+"/"+c.name, "/") }

// find returns the charts of a folder, those in it and those in the folders in it. They are in the order of the
// hashes of their names, so that those that are tried live, or at all, are the same each time, and not chosen.
func find(folder string) ([]chart, error) {
	var charts []chart
	for _, pattern := range []string{"*/Chart.yaml", "*/*/Chart.yaml"} {
		files, err := filepath.Glob(filepath.Join(folder, pattern))
		if err != nil {
			return nil, err
		}
		for _, file := range files {
			c := chart{name: filepath.Base(filepath.Dir(file)), folder: filepath.Dir(file)}
			if above := filepath.Dir(c.folder); filepath.Clean(above) != filepath.Clean(folder) {
				c.repository = filepath.Base(above)
			}
			charts = append(charts, c)
		}
	}
	slices.SortFunc(charts, func(a, b chart) int {
		x, y := sha256.Sum256([]byte(a.String())), sha256.Sum256([]byte(b.String()))
		return cmp.Or(slices.Compare(x[:], y[:]), strings.Compare(a.String(), b.String()))
	})
	return charts, nil
}

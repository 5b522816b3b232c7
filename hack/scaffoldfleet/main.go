// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Scaffoldfleet makes an operator of each Helm chart in a folder, and prints a table of how far each comes: the
// project is made, with its golden file, and compiles; with -live N, N of them, drawn by the hash of
// their names, pass their own tests and bring the sample to Ready on the control plane.
package main

import (
	"cmp"
	"context"
	"crypto/sha256"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/corbel-run/corbel/internal/scaffold"
	"github.com/corbel-run/corbel/internal/scaffold/values"
)

func main() {
	charts := flag.String("charts", "", "the folder of the charts")
	work := flag.String("work", "", "the folder of the projects; by default one that is removed")
	live := flag.Int("live", 0, "how many of them are tried on a control plane")
	limit := flag.Int("limit", 0, "how many charts are taken, drawn by the hash of their names; 0 means all")
	only := flag.String("only", "", "names of charts, separated by commas; by default all")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *charts, *work, *live, *limit, *only); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// result is how far a chart came.
type result struct {
	chart             string
	made, tests, live string // "" if it was not tried, "ok", or why not
	leaves, typed     int
	took              time.Duration
}

func run(ctx context.Context, charts, work string, live, limit int, only string) error {
	library, err := os.Getwd()
	if err != nil {
		return err
	}
	entries, err := os.ReadDir(charts)
	if err != nil {
		return fmt.Errorf("name a folder with charts by -charts: %w", err)
	}
	if work == "" {
		if work, err = os.MkdirTemp("", "scaffoldfleet-"); err != nil {
			return err
		}
		defer os.RemoveAll(work)
	}
	var names []string
	for _, entry := range entries {
		if _, err := os.Stat(filepath.Join(charts, entry.Name(), "Chart.yaml")); err == nil && (only == "" || slices.Contains(strings.Split(only, ","), entry.Name())) {
			names = append(names, entry.Name())
		}
	}
	if limit > 0 {
		names = draw(names, limit)
		slices.Sort(names)
	}
	drawn := draw(names, live)
	var results []result
	fmt.Println("| chart | made | its tests | live | leaves typed | seconds |\n|---|---|---|---|---|---|")
	for _, name := range names {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		r := try(ctx, filepath.Join(charts, name), filepath.Join(work, strings.ToLower(name)), library, slices.Contains(drawn, name))
		results = append(results, r)
		fmt.Printf("| %s | %s | %s | %s | %d of %d | %.0f |\n", r.chart, r.made, r.tests, r.live, r.typed, r.leaves, r.took.Seconds())
	}
	fmt.Println(summary(results))
	return nil
}

// draw chooses names by their hashes, so that the choice is the same each time and not ours.
func draw(names []string, n int) []string {
	drawn := slices.Clone(names)
	slices.SortFunc(drawn, func(a, b string) int {
		x, y := sha256.Sum256([]byte(a)), sha256.Sum256([]byte(b))
		return cmp.Or(slices.Compare(x[:], y[:]), strings.Compare(a, b))
	})
	return drawn[:min(n, len(drawn))]
}

// try makes an operator of a chart.
func try(ctx context.Context, chart, folder, library string, live bool) (r result) {
	started := time.Now()
	defer func() { r.took = time.Since(started) }()
	r.chart = filepath.Base(chart)
	text, _ := os.ReadFile(filepath.Join(chart, "values.yaml"))
	schema, _ := os.ReadFile(filepath.Join(chart, "values.schema.json"))
	if root, _, err := values.Learn(values.Source{Values: text, Schema: schema}); err == nil {
		r.leaves, r.typed = values.Leaves(root)
	}
	o, source := scaffold.Options{Kind: "Sample", Group: "sample.example.com"}, scaffold.Source{Form: scaffold.FormChart, Path: chart}
	if _, err := scaffold.Create(ctx, o, source, scaffold.Corbel{Version: "v0.0.0", Folder: library}, folder, scaffold.Toolchain{}); err != nil {
		r.made = reason(err.Error())
		return r
	}
	r.made = "ok"
	r.tests = command(ctx, folder, "go", "test", "-run", "TestTheGoldenFilesAreRendered", ".")
	if live && r.tests == "ok" {
		if r.live = command(ctx, folder, "go", "tool", "corbel", "dev", "--once"); r.live == "ok" {
			r.live = command(ctx, folder, "make", "test")
		}
	}
	return r
}

// patience is how long a command may take.
const patience = 4 * time.Minute

// command runs a command in a project, and returns "ok" or why it failed.
func command(ctx context.Context, folder, name string, args ...string) string {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	c := exec.CommandContext(ctx, name, args...)
	c.Dir, c.Env, c.Cancel = folder, append(os.Environ(), "GOWORK=off"), func() error { return c.Process.Signal(os.Interrupt) }
	c.WaitDelay = 30 * time.Second
	output, err := c.CombinedOutput()
	if err == nil {
		return "ok"
	}
	_ = os.WriteFile(filepath.Join(folder, "bin-"+filepath.Base(name)+".log"), output, 0o644)
	return reason(fmt.Sprintf("%s %s: %v: %s", name, strings.Join(args, " "), err, output))
}

// reason returns the beginning of a text in one line, for the cell of a table.
func reason(text string) string {
	text = strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " ")
	return string([]rune(text)[:min(len([]rune(text)), 300)])
}

// summary counts the results.
func summary(results []result) string {
	var made, tests, tried, live, leaves, typed int
	for _, r := range results {
		count := func(total *int, is bool) {
			if is {
				*total++
			}
		}
		count(&made, r.made == "ok")
		count(&tests, r.tests == "ok")
		count(&tried, r.live != "")
		count(&live, r.live == "ok")
		leaves, typed = leaves+r.leaves, typed+r.typed
	}
	return fmt.Sprintf("\n%d charts: %d projects are made, %d compile and render their golden file; %d of %d that were tried live become Ready and pass all tests; %d of %d leaves are typed with --spec full",
		len(results), made, tests, live, tried, typed, leaves)
}

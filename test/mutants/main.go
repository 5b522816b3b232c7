// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	only := flag.String("run", ".", "regular expression of the names of the mutants to run")
	workers := flag.Int("workers", 2, "number of mutants that are tested at the same time")
	flag.Parse()
	selected, err := regexp.Compile(*only)
	if err != nil {
		return err
	}
	root, err := moduleRoot(ctx)
	if err != nil {
		return err
	}
	chosen := slices.DeleteFunc(slices.Clone(mutants), func(m mutant) bool { return !selected.MatchString(m.name) })
	var packages []string
	for _, m := range chosen {
		packages = append(packages, m.packages...)
	}
	slices.Sort(packages)
	if len(packages) == 0 {
		return fmt.Errorf("no mutant has a name that matches %q", *only)
	}
	// A failure that is there without a mutant would look as if it had noticed one.
	passes, printed, err := test(ctx, root, "the code without a mutant", slices.Compact(packages))
	if err == nil && !passes {
		err = fmt.Errorf("the tests fail without a mutant:\n%s", printed)
	}
	if err != nil {
		return err
	}
	return runAll(ctx, root, chosen, *workers)
}

// runAll reports what becomes of each mutant, in the order in which they end. The
// error names those that survive, and those that could not be tested.
func runAll(ctx context.Context, root string, chosen []mutant, workers int) error {
	started, queue := time.Now(), make(chan mutant)
	var mu sync.Mutex
	var errs []error
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for m := range queue {
				start := time.Now()
				survives, err := inFolder(func(folder string) (bool, error) { return m.survives(ctx, root, folder) })
				mu.Lock()
				verdict := "noticed "
				switch {
				case err != nil:
					verdict = "ERROR   "
					errs = append(errs, err)
				case survives:
					verdict = "SURVIVES"
					errs = append(errs, fmt.Errorf("mutant %q survives the tests of %s", m.name, strings.Join(m.packages, ", ")))
				}
				fmt.Printf("%s %5.1fs  %s\n", verdict, time.Since(start).Seconds(), m.name)
				mu.Unlock()
			}
		})
	}
	for _, m := range chosen {
		queue <- m
	}
	close(queue)
	group.Wait()
	fmt.Printf("%d of %d mutants are noticed, in %s\n", len(chosen)-len(errs), len(chosen), time.Since(started).Round(time.Second))
	return errors.Join(errs...)
}

// inFolder calls the function with a folder that it removes at the end.
func inFolder(call func(folder string) (bool, error)) (bool, error) {
	folder, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return false, err
	}
	result, err := call(folder)
	return result, errors.Join(err, os.RemoveAll(folder))
}

// moduleRoot returns the folder of the module that the program is run in.
func moduleRoot(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	path := strings.TrimSpace(string(output))
	if err == nil && filepath.Base(path) != "go.mod" {
		err = errors.New("the working directory belongs to no module")
	}
	return filepath.Dir(path), err
}

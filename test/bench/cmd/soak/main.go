// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command soak runs test/bench/soak on a control plane of its own, and fails if a
// condition does not hold at the end. `make soak` builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/soak"
	"github.com/corbel-run/corbel/test/env"
)

func main() {
	measure.ServeSubject()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	options := soak.Options{
		Rest: 20 * time.Second,
		Logf: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
	flag.DurationVar(&options.Duration, "duration", 10*time.Minute, "how long the components are disturbed")
	flag.IntVar(&options.Components, "components", 200, "number of components")
	flag.DurationVar(&options.Pause, "pause", 200*time.Millisecond, "time between two disturbances")
	flag.StringVar(&options.Profiles, "profiles", "", "folder for profiles of the heap, early.pprof and late.pprof; compare them with go tool pprof -base")
	flag.Uint64Var(&options.Seed, "seed", uint64(time.Now().Unix()), "seed of the disturbances")
	flag.BoolVar(&options.Faults, "faults", true, "put a storm of faults between the operators and the API server, kill and stop processes, and take labels and annotations off objects")
	flag.BoolVar(&options.Fleet, "fleet", false, "roll versions of the operator out over 1,000 small components, while processes are killed")
	scenarios := flag.Bool("ha", false, "run the scenarios of three API servers with three members of etcd, one after the other, each for the duration")
	selected := flag.String("run", "", "regular expression of the scenarios to run")
	flag.Parse()
	if *scenarios {
		return runScenarios(ctx, options, *selected)
	}
	if options.Fleet {
		options.Components, options.Faults = max(options.Components, 1000), true
	}
	fmt.Printf("%d components for %s, seed %d\n", options.Components, options.Duration, options.Seed)
	return runOne(ctx, env.Options{AuditLog: true, AuditBodies: true, Cluster: options.Faults}, options)
}

// runScenarios runs all scenarios that match, and returns the errors of all.
func runScenarios(ctx context.Context, options soak.Options, selected string) error {
	matches, err := regexp.Compile(selected)
	if err != nil {
		return err
	}
	var errs []error
	for _, scenario := range soak.Scenarios() {
		if !matches.MatchString(scenario.Name) || ctx.Err() != nil {
			continue
		}
		fmt.Printf("\n%s: %d components for %s, seed %d\n", scenario.Name, options.Components, options.Duration, options.Seed)
		options.Scenario, options.Faults = &scenario, true
		if err := runOne(ctx, env.Options{AuditLog: true, AuditBodies: true, Cluster: true, Servers: soak.Servers}, options); err != nil {
			fmt.Println(err)
			errs = append(errs, fmt.Errorf("%s: %w", scenario.Name, err))
		}
	}
	return errors.Join(errs...)
}

func runOne(ctx context.Context, cluster env.Options, options soak.Options) error {
	e, err := env.Start(ctx, cluster)
	if err != nil {
		return err
	}
	outcome, err := soak.Run(ctx, e, options)
	if outcome != nil && len(outcome.Lines) > 0 {
		fmt.Println(outcome)
	}
	if err == nil && !outcome.Holds() {
		err = errors.New("the soak does not end as it should")
	}
	if err != nil {
		e.KeepLogs() // with the audit log, which shows each write
	}
	return errors.Join(err, e.Stop())
}

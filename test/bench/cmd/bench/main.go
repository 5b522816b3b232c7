// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Corbel, a bare client and the library of Flux on a real API
// server, and plans and charts beside kubectl and Helm, and writes what came out to the documentation.
// `make bench` builds and runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

type settings struct {
	sizes    []size
	rounds   int
	out      string
	flux     string
	helm     string
	only     string
	revision string
	profiles string
	load     float64
	draw     bool
}

func main() {
	measure.ServeSubject()
	ctrl.SetLogger(logr.Discard())
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	s, err := parse()
	if err == nil {
		err = run(ctx, s)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func parse() (settings, error) {
	s := settings{load: measure.LoadAverage()}
	sizes := flag.String("sizes", "100,1000", "numbers of dependent objects of one component; or 1000x20 for 1000 components of 20; or flux for 1000 components of a chart, flux:100 for 100")
	flag.IntVar(&s.rounds, "rounds", 0, "how often each size is measured; default 5, but 3 from 5,000 objects on and 1 from 20,000 on")
	flag.StringVar(&s.out, "out", "docs/evidence", "folder of performance.json, performance.md and performance.svg")
	flag.StringVar(&s.flux, "flux", "", "program of test/bench/flux; empty leaves Flux out")
	flag.StringVar(&s.helm, "helm", "", "command of Helm, for plans and charts; empty leaves Helm out")
	flag.StringVar(&s.only, "only", "", "what is measured: life, plan; empty is both")
	flag.StringVar(&s.revision, "revision", "", "revision of Corbel, for the report")
	flag.StringVar(&s.profiles, "profiles", "", "folder for profiles of processor time and heap of the operator in each scenario, and of the processor time of the API server while charts are installed; they cost a little time")
	flag.BoolVar(&s.draw, "draw", false, "measure nothing; write the page and the chart from performance.json again, and print all tables with goals and processor times")
	flag.Parse()
	var errs []error
	if !slices.Contains([]string{"", life, plan}, s.only) {
		errs = append(errs, fmt.Errorf("-only %s: must be %s or %s", s.only, life, plan))
	}
	for text := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' || r == ' ' }) {
		size, err := parseSize(text)
		if err != nil {
			errs = append(errs, fmt.Errorf("-sizes %s: %w", text, err))
		}
		s.sizes = append(s.sizes, size)
	}
	return s, errors.Join(errs...)
}

// What is measured.
const (
	life = "life" // of one component, or of a fleet
	plan = "plan" // of what would be done to one component, and rollbacks
)

// size is a number of components and of objects in each.
type size struct {
	components, objects int
	chart               bool
}

// fluxWorkload is the size of the benchmark of Flux; fluxWorkload:100 has 100 components.
const fluxWorkload = "flux"

func parseSize(text string) (size, error) {
	if workload, number, chosen := strings.Cut(text, ":"); workload == fluxWorkload {
		n := 1000
		if chosen {
			var err error
			if n, err = strconv.Atoi(number); err != nil || n < 2 {
				return size{}, errors.New("must be at least two components")
			}
		}
		return size{n, subject.ChartObjects, true}, nil
	}
	components, objects, fleet := strings.Cut(text, "x")
	if !fleet {
		components, objects = "1", text
	}
	c, err := strconv.Atoi(components)
	n, err2 := strconv.Atoi(objects)
	if err := errors.Join(err, err2); err != nil {
		return size{}, err
	}
	if c < 1 || n < 10 {
		return size{}, errors.New("must be at least one component of at least 10 objects")
	}
	return size{components: c, objects: n}, nil
}

func run(ctx context.Context, s settings) error {
	all, err := report.Load(s.out + "/performance.json")
	if err != nil {
		return err
	}
	if s.draw {
		fmt.Println(all.Tables())
		return all.Publish(s.out)
	}
	if s.only != plan {
		var others, charts, besidePeers []size // the requests of commands are counted in the audit log
		for _, size := range s.sizes {
			switch {
			case !size.chart:
				others = append(others, size)
			case size.components > measure.MostOfPeers:
				charts = append(charts, size)
			default:
				besidePeers = append(besidePeers, size)
			}
		}
		for _, part := range []struct {
			options env.Options
			sizes   []size
		}{{env.Options{}, others}, {env.Options{Cluster: true}, charts}, {env.Options{Cluster: true, AuditLog: true, AuditBodies: true}, besidePeers}} {
			if len(part.sizes) == 0 {
				continue
			}
			if err := s.measure(ctx, part.options, part.sizes, measure.Run, all, all.Put); err != nil {
				return err
			}
		}
	}
	if s.only != life && slices.ContainsFunc(s.sizes, func(size size) bool { return size.components == 1 }) {
		single := slices.DeleteFunc(slices.Clone(s.sizes), func(size size) bool { return size.components > 1 })
		return s.measure(ctx, env.Options{AuditLog: true, AuditBodies: true}, single, measure.Plans, all, all.PutPlans)
	}
	return nil
}

// measure measures sizes in an environment of their own, and publishes each at once.
func (s settings) measure(
	ctx context.Context, options env.Options, sizes []size,
	run func(context.Context, *env.Environment, measure.Options) (report.Size, error), all *report.Report, put func(report.Size),
) error {
	if s.profiles != "" {
		if err := os.MkdirAll(s.profiles, 0o755); err != nil {
			return err
		}
		options.APIServerArgs = append(options.APIServerArgs, "--profiling=true")
	}
	e, err := env.Start(ctx, options)
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for _, size := range sizes {
		measured, err := run(ctx, e, s.options(size))
		if err != nil {
			return err
		}
		put(measured)
		if err := all.Save(s.out + "/performance.json"); err != nil {
			return err
		}
		if err := all.Publish(s.out); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) options(size size) measure.Options {
	return measure.Options{
		Objects: size.objects, Components: size.components, Chart: size.chart, Rounds: s.roundsOf(size.components * size.objects), Rest: 20 * time.Second, Repairs: 5, Patience: 3 * time.Second,
		Flux: s.flux, Helm: s.helm, Profiles: s.profiles, Revision: s.revision, Load: s.load,
		Logf: func(format string, args ...any) { fmt.Fprintf(os.Stderr, format+"\n", args...) },
	}
}

func (s settings) roundsOf(n int) int {
	switch {
	case s.rounds > 0:
		return s.rounds
	case n >= 20000:
		return 1
	case n >= 5000:
		return 3
	default:
		return 5
	}
}

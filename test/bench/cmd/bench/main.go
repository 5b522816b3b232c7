// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Command bench measures Corbel, a bare client and the library of Flux on a real API
// server, and writes what came out to the documentation. `make bench` builds and
// runs it.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/env"
)

type settings struct {
	sizes    []int
	rounds   int
	out      string
	flux     string
	revision string
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
	s := settings{}
	sizes := flag.String("sizes", "100,1000", "numbers of dependent objects")
	flag.IntVar(&s.rounds, "rounds", 0, "how often each size is measured; default 5, but 3 from 5,000 objects on and 1 from 20,000 on")
	flag.StringVar(&s.out, "out", "docs", "folder of performance.json, performance.md and performance.svg")
	flag.StringVar(&s.flux, "flux", "", "program of test/bench/flux; empty leaves Flux out")
	flag.StringVar(&s.revision, "revision", "", "revision of Corbel, for the report")
	flag.BoolVar(&s.draw, "draw", false, "measure nothing; only write tables and chart from performance.json again")
	flag.Parse()
	var errs []error
	for text := range strings.FieldsFuncSeq(*sizes, func(r rune) bool { return r == ',' || r == ' ' }) {
		n, err := strconv.Atoi(text)
		if err == nil && n < 10 {
			err = errors.New("must be at least 10")
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("-sizes %s: %w", text, err))
		}
		s.sizes = append(s.sizes, n)
	}
	return s, errors.Join(errs...)
}

func run(ctx context.Context, s settings) error {
	all, err := report.Load(s.out + "/performance.json")
	if err != nil {
		return err
	}
	if s.draw {
		return all.Publish(s.out)
	}
	e, err := env.Start(ctx, env.Options{})
	if err != nil {
		return err
	}
	defer func() {
		if err := e.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}()
	for _, n := range s.sizes {
		size, err := measure.Run(ctx, e, s.options(n))
		if err != nil {
			return err
		}
		all.Put(size)
		if err := all.Save(s.out + "/performance.json"); err != nil {
			return err
		}
		if err := all.Publish(s.out); err != nil {
			return err
		}
	}
	return nil
}

func (s settings) options(n int) measure.Options {
	return measure.Options{
		Objects: n, Rounds: s.roundsOf(n), Rest: 20 * time.Second, Repairs: 5, Patience: 3 * time.Second,
		Flux: s.flux, Revision: s.revision,
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

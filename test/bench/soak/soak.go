// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/measure"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// Options say how long and how much. There are no defaults.
type Options struct {
	Components int
	// Duration is how long there are disturbances. What is compared at the end is first
	// measured when three tenths of it have passed.
	Duration time.Duration
	// Pause is the time between two disturbances.
	Pause time.Duration
	// Rest is how long the operator is watched in the end, when nothing happens. Each
	// component is reconciled at least once in that time.
	Rest time.Duration
	// Faults puts a storm between the operators and the API server, kills and stops processes,
	// removes labels and annotations from objects and deletes namespaces. It needs an environment
	// with a cluster.
	Faults bool
	// Fleet makes the components small, and rolls versions of the operator out while processes are killed: each second one is
	// broken, and may reach a part of the components only. It needs Faults.
	Fleet bool
	// Scenario is the fault that goes on during the disturbances, in place of a storm. It needs Faults, and an environment with Servers API servers.
	Scenario *Scenario
	// Seed makes the disturbances repeatable, as far as they do not depend on time.
	Seed uint64
	// Profiles is the folder of early.pprof and late.pprof, profiles of the heap; empty
	// leaves them out.
	Profiles string
	// Logf reports progress.
	Logf func(format string, args ...any)
}

// settling is how long everything may take to become right after the last disturbance.
const settling = 5 * time.Minute

// soak is a run.
type soak struct {
	Options
	client.WithWatch
	env       *env.Environment
	proxies   []*proxy         // one for each operator that runs at a time
	starts    atomic.Int64     // of operators that elect a leader
	operators *operators       // while several elect a leader
	process   *measure.Process // the one that is measured
	namespace string
	random    *rand.Rand
	fate      *rand.Rand // of the processes
	strikes   map[string]int
	others    map[types.NamespacedName]string // fingerprints of the objects of others
	fleet     *fleet                          // with Options.Fleet
	started   time.Time
	killed    []time.Time // when the API server was killed
	restored  []time.Time // when etcd got an earlier state back
	outcome   Outcome
}

// Run starts the operator in an environment with an audit log and bodies, and
// disturbs it. An error says that the run could not be made; what the operator did wrong
// is in the outcome.
func Run(ctx context.Context, e *env.Environment, options Options) (*Outcome, error) {
	s := &soak{
		Options: options, env: e, strikes: map[string]int{},
		fleet: newFleet(options.Fleet), random: rand.New(rand.NewPCG(options.Seed, 1)), fate: rand.New(rand.NewPCG(options.Seed, 3)),
	}
	var err error
	if s.WithWatch, err = measure.Client(ctx, e); err != nil {
		return nil, err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "soak-"}}
	if err := s.Create(ctx, namespace); err != nil {
		return nil, err
	}
	s.namespace = namespace.Name
	if err := s.startProxies(); err != nil {
		return nil, err
	}
	defer s.closeProxies()
	defer s.endOperators()
	parts := []func(context.Context) error{s.populate, s.storm, s.disturb, s.finish, s.rest, s.audit}
	if options.Scenario != nil {
		parts = []func(context.Context) error{s.populate, s.trouble, s.finish, s.rest, s.audit}
	}
	for _, part := range parts {
		if err := part(ctx); err != nil {
			return &s.outcome, err
		}
	}
	return &s.outcome, nil
}

// endOperators ends all operators.
func (s *soak) endOperators() {
	if s.operators != nil {
		s.outcome.Deaths = append(s.outcome.Deaths, s.operators.end()...)
		s.operators = nil
	}
	if s.process != nil {
		s.process.End()
		s.process = nil
	}
}

// share is so many tenths of the duration.
func (s *soak) share(tenths int) time.Duration { return s.Duration * time.Duration(tenths) / 10 }

// startProxies starts the proxies between the operators and all API servers.
func (s *soak) startProxies() error {
	var configs []*rest.Config
	for i := range s.env.Servers() {
		config, err := s.env.ServerConfig(i+1, measure.User(report.Corbel), "system:masters")
		if err != nil {
			return err
		}
		configs = append(configs, config)
	}
	proxies := 1
	if s.Scenario != nil {
		proxies = 2
	}
	for range proxies {
		p, err := startProxy(configs, s.Seed)
		if err != nil {
			return err
		}
		s.proxies = append(s.proxies, p)
	}
	return nil
}

func (s *soak) closeProxies() {
	for _, p := range s.proxies {
		p.close()
	}
}

// nextOrder is that of the next one of the operators that elect a leader.
func (s *soak) nextOrder() subject.Order {
	order := s.order("storm")
	order.Cluster = s.proxies[int(s.starts.Add(1))%len(s.proxies)].cluster
	return order
}

// order is that of an operator to connect.
func (s *soak) order(lease string) subject.Order {
	return s.fleet.order(subject.Order{Cluster: s.proxies[0].cluster, Namespace: s.namespace, Lease: lease})
}

// measured starts the operator that is measured, alone.
func (s *soak) measured(ctx context.Context) (err error) {
	s.process, err = measure.ConnectTo(ctx, report.Corbel, "", s.order(""))
	return err
}

// populate creates the components and waits for all of them.
func (s *soak) populate(ctx context.Context) error {
	if err := s.measured(ctx); err != nil {
		return err
	}
	if s.Faults {
		if err := s.createDeletedNamespaces(ctx); err != nil {
			return err
		}
	}
	for i := range s.Components {
		if err := s.Create(ctx, s.component(i)); err != nil {
			return err
		}
	}
	if err := s.waitUntilIdle(ctx); err != nil {
		return fmt.Errorf("install %d components: %w", s.Components, err)
	}
	if err := s.createUnownedObjects(ctx); err != nil {
		return err
	}
	return s.sample(ctx, "installed")
}

// storm replaces the operator by two that elect a leader, for the first part of the
// time, and kills them. The one that is measured later starts afterwards.
func (s *soak) storm(ctx context.Context) error {
	s.started = time.Now()
	if !s.Faults {
		return nil
	}
	s.endOperators()
	var err error
	if s.operators, err = startOperators(ctx, 2, s.nextOrder); err != nil {
		return err
	}
	if err := s.rollOuts(ctx); err != nil {
		return err
	}
	if err := s.disturbUntil(ctx, s.started.Add(s.share(s.fleet.schedule().storm))); err != nil {
		return err
	}
	s.endOperators()
	return s.measured(ctx)
}

// disturb continues until the time has passed. On the way the operator is measured at rest,
// and the API server restarted in the middle of things.
func (s *soak) disturb(ctx context.Context) error {
	if err := s.disturbUntil(ctx, s.started.Add(s.share(s.fleet.schedule().early))); err != nil {
		return err
	}
	if err := s.restore(ctx); err != nil {
		return err
	}
	if err := s.waitUntilIdle(ctx); err != nil {
		return err
	}
	if err := s.sampleAtRest(ctx, "settled", "early"); err != nil {
		return err
	}
	s.outcome.Early = s.outcome.last()
	if err := s.disturbUntil(ctx, s.started.Add(s.share(s.fleet.schedule().restart))); err != nil {
		return err
	}
	s.Logf("the API server is killed and started again")
	if err := s.restartAPIServer(ctx); err != nil {
		return err
	}
	took, err := s.recovery(ctx)
	if err != nil {
		return err
	}
	s.outcome.Recovery = took
	if err := s.sample(ctx, fmt.Sprintf("API server restarted; drift is repaired again after %s", took.Round(10*time.Millisecond))); err != nil {
		return err
	}
	return s.disturbUntil(ctx, s.started.Add(s.Duration))
}

// restartAPIServer kills the API server and starts it again. The audit log lacks what the
// server did last.
func (s *soak) restartAPIServer(ctx context.Context) error {
	err := s.env.KillAPIServer()
	s.killed = append(s.killed, time.Now())
	return errors.Join(err, s.env.RestartAPIServer(ctx))
}

// disturbUntil disturbs, and records the numbers once a minute.
func (s *soak) disturbUntil(ctx context.Context, end time.Time) error {
	if !s.Faults {
		return s.disturbWhile(ctx, end, nil)
	}
	s.proxies[0].Rage(true)
	defer s.proxies[0].Rage(false)
	return s.disturbWhile(ctx, end, s.chaos)
}

// disturbWhile disturbs while something else goes on, which ends with its context.
func (s *soak) disturbWhile(ctx context.Context, end time.Time, faults func(context.Context) error) (err error) {
	if faults != nil {
		whole, calm := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- faults(whole) }()
		defer func() {
			calm()
			if err = errors.Join(err, <-ended); err == nil {
				err = s.sample(ctx, "")
			}
		}()
	}
	ticker := time.NewTicker(s.Pause)
	defer ticker.Stop()
	minute := time.Now().Add(time.Minute)
	for time.Now().Before(end) {
		if faults == nil && time.Now().After(minute) {
			minute = minute.Add(time.Minute)
			if err := s.sample(ctx, ""); err != nil {
				return err
			}
		}
		if err := s.disturbance(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
	if faults != nil {
		return nil
	}
	return s.sample(ctx, "")
}

// finish lets everything become right, measures again what was measured early, and
// checks what there is.
func (s *soak) finish(ctx context.Context) error {
	if err := s.restore(ctx); err != nil {
		return err
	}
	err := s.waitUntilIdle(ctx)
	measure := func() error { return s.sampleAtRest(ctx, "settled", "late") }
	if err != nil { // there is no peace
		measure = func() error { return s.sample(ctx, "not settled") }
	}
	if err := measure(); err != nil {
		return err
	}
	s.outcome.Late = s.outcome.last()
	var unsettled *unsettledError
	if errors.As(err, &unsettled) { // a verdict on the operator, and not on the run
		s.outcome.Findings = *unsettled.findings
		err = nil
	}
	if err != nil {
		return err
	}
	left, err := s.search(ctx)
	s.outcome.Left = append(s.outcome.Left, left...)
	s.outcome.Storm, s.outcome.Strikes = s.proxies[0].String(), s.strikes
	return err
}

// rest sees what the operator sends when nothing happens.
func (s *soak) rest(ctx context.Context) error {
	if !sleep(ctx, s.Rest) {
		return ctx.Err()
	}
	if err := s.sample(ctx, "rest"); err != nil {
		return err
	}
	s.outcome.Rest = s.outcome.last()
	return nil
}

// sample adds a line to the table.
func (s *soak) sample(ctx context.Context, what string) error {
	if s.Fleet { // the log grows by gigabytes; what is read of it now does not have to be read at the end
		if _, err := s.env.AuditEvents(ctx); err != nil {
			return err
		}
	}
	if s.process == nil {
		s.add(what, subject.Usage{})
		return nil
	}
	select {
	case <-s.process.Exited():
		_, text := s.process.Ending()
		s.outcome.Deaths = append(s.outcome.Deaths, text)
		return fmt.Errorf("the operator has ended: %s", text)
	default:
	}
	usage, err := s.process.Take(ctx, "")
	if err != nil {
		return err
	}
	s.add(what, usage)
	return nil
}

// looks is how often the operator is measured in peace. Some components are reconciled
// every second even then, and what their reconciles hold is no growth: the least counts.
const looks = 5

// sampleAtRest adds the line of an operator that has nothing to do, and writes a profile.
func (s *soak) sampleAtRest(ctx context.Context, what, profile string) error {
	path := ""
	if s.Profiles != "" {
		path = filepath.Join(s.Profiles, profile+".pprof")
	}
	var all subject.Usage
	for look := range looks {
		if _, err := s.process.Order(ctx, subject.Order{Do: subject.Idle}); err != nil {
			return err
		}
		usage, err := s.process.Take(ctx, path)
		if err != nil {
			return err
		}
		if look == 0 {
			all = usage
		} else {
			all = together(all, usage)
		}
	}
	s.add(what, all)
	return nil
}

func (s *soak) add(what string, usage subject.Usage) {
	line := Line{What: what, Usage: usage, Disturbances: s.outcome.Disturbances}
	if !s.started.IsZero() {
		line.At = time.Since(s.started)
	}
	s.outcome.Lines = append(s.outcome.Lines, line)
	s.Logf("%s", line)
}

// unsettledError lists the objects that are not settled in time.
type unsettledError struct{ findings *Findings }

// Error names the first findings.
func (e *unsettledError) Error() string {
	return "it does not come to rest: " + first(e.findings.all())
}

// waitUntilIdle waits until all is as it should be, and the operator has nothing to do.
func (s *soak) waitUntilIdle(ctx context.Context) error {
	deadline := time.Now().Add(settling)
	for {
		var findings *Findings
		w, err := s.observe(ctx)
		if err == nil {
			if findings = s.check(w); findings.Len() == 0 {
				if s.process != nil {
					_, err = s.process.Order(ctx, subject.Order{Do: subject.Idle})
				}
				return err
			}
		}
		switch {
		case time.Now().Before(deadline):
		case err != nil:
			return err
		default:
			return &unsettledError{findings}
		}
		if !sleep(ctx, 500*time.Millisecond) {
			return ctx.Err()
		}
	}
}

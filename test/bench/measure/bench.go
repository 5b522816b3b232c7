// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// Options say what is measured. There are no defaults.
type Options struct {
	// Objects is how many a component has.
	Objects int
	// Components is how many there are: one that is measured in detail, or a fleet.
	Components int
	// Chart makes each component the objects of a chart with a Deployment, as in the benchmark of Flux. It needs an
	// environment with controllers.
	Chart  bool
	Rounds int
	// Rest is how long the operator is watched while there is nothing to do, once.
	Rest time.Duration
	// Repairs is how many objects are changed, and how many deleted, in each round.
	Repairs int
	// Patience is how long a repair is waited for.
	Patience time.Duration
	// Flux is the program of test/bench/flux; empty leaves Flux out.
	Flux string
	// Helm is the command of Helm, for plans, and for charts up to MostOfPeers components; empty leaves it out.
	Helm string
	// Profiles is the folder for profiles of the processor time: one of the operator in each scenario, such as install.pprof, and
	// apiserver.pprof while charts are installed. Those of what the heap of the operator holds after a scenario are beside them, such as
	// install-heap.pprof. Empty leaves them out. They are of the last size and round.
	Profiles string
	// Revision is that of Corbel, for the report.
	Revision string
	// Load is the load average of the machine before we came, for the report.
	Load float64
	// Logf reports progress.
	Logf func(format string, args ...any)
}

// bench is one size that is being measured.
type bench struct {
	Options
	client.WithWatch
	env  *env.Environment
	size report.Size
	// half is when half of what is measured next was done.
	half time.Duration
}

// Run measures one size.
func Run(ctx context.Context, e *env.Environment, options Options) (report.Size, error) {
	b, err := newBench(ctx, e, options)
	if err != nil {
		return report.Size{}, err
	}
	if err := b.warmUp(ctx); err != nil {
		return b.size, fmt.Errorf("warm up: %w", err)
	}
	courses := []func(context.Context, int) error{b.corbel, b.limit}
	if options.Flux != "" {
		courses = append(courses, b.flux)
	}
	if options.Chart {
		courses = append([]func(context.Context, int) error{b.charts, b.limitOfCharts}, b.peersOfCharts()...)
	} else if options.Components > 1 {
		courses = []func(context.Context, int) error{b.fleet, b.limit}
	}
	err = b.alternate(ctx, courses)
	if b.Profiles != "" {
		err = errors.Join(err, os.Remove(b.profile("current"))) // of a process that has ended
	}
	return b.size, err
}

func newBench(ctx context.Context, e *env.Environment, options Options) (*bench, error) {
	c, err := Client(ctx, e)
	if err != nil {
		return nil, err
	}
	b := &bench{Options: options, WithWatch: c, env: e}
	b.size = report.Size{Objects: options.Objects, Components: options.Components, Rounds: options.Rounds, Chart: options.Chart}
	b.size.Where, err = where(e, options)
	return b, err
}

// alternate measures all subjects in each round, and another one is the first each time.
func (b *bench) alternate(ctx context.Context, courses []func(context.Context, int) error) error {
	for round := range b.Rounds {
		for i := range courses {
			if err := courses[(round+i)%len(courses)](ctx, round); err != nil {
				return fmt.Errorf("round %d with %d × %d objects: %w", round+1, b.Components, b.Objects, err)
			}
		}
	}
	return nil
}

// warmUp takes a small component through its life: the server is slow at what it does
// for the first time.
func (b *bench) warmUp(ctx context.Context) error {
	small := *b
	small.Objects, small.Components, small.Rest, small.Repairs = 10, 1, 0, 0
	small.Chart, small.Profiles = false, ""
	small.Logf = func(string, ...any) {}
	return small.corbel(ctx, 0)
}

// Client returns the observer's client, when the server knows the type of the components.
func Client(ctx context.Context, e *env.Environment) (client.WithWatch, error) {
	scheme, err := operator.Scheme()
	if err != nil {
		return nil, err
	}
	c, err := client.NewWithWatch(e.Config(), client.Options{Scheme: scheme})
	if err != nil {
		return nil, err
	}
	if err := c.Create(ctx, operator.CRD()); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, err
	}
	for deadline := time.Now().Add(time.Minute); ; {
		err := c.List(ctx, &operator.LoadList{})
		if err == nil || time.Now().After(deadline) {
			return c, err
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// patience is how long anything but a repair may take.
func (b *bench) patience() time.Duration {
	return time.Minute + time.Duration(b.Objects*b.Components)*200*time.Millisecond
}

// start starts a subject with a namespace of its own.
func (b *bench) start(ctx context.Context, name report.Subject, program string) (*Process, string, error) {
	namespace, err := b.newNamespace(ctx, name)
	if err != nil {
		return nil, "", err
	}
	p, err := b.connect(ctx, name, program, namespace)
	return p, namespace, err
}

func (b *bench) newNamespace(ctx context.Context, name report.Subject) (string, error) {
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "bench-" + string(name) + "-"}}
	err := b.Create(ctx, namespace)
	return namespace.Name, err
}

func (b *bench) connect(ctx context.Context, name report.Subject, program, namespace string) (*Process, error) {
	return b.connectWith(ctx, name, program, subject.Order{Namespace: namespace, Chart: firstChart})
}

func (b *bench) connectWith(ctx context.Context, name report.Subject, program string, order subject.Order) (*Process, error) {
	config, err := ConfigFor(b.env, name)
	if err != nil {
		return nil, err
	}
	order.Cluster = subject.ClusterOf(config)
	if b.Components > 1 && name == report.Corbel {
		order.Lease = lease
	}
	if name == report.Corbel {
		order.Profile = b.profile("current")
	}
	return ConnectTo(ctx, name, program, order)
}

// profile returns the file for a profile of the operator; empty if there is to be none.
func (b *bench) profile(of report.Scenario) string {
	if b.Profiles == "" {
		return ""
	}
	return filepath.Join(b.Profiles, string(of)+".pprof")
}

// nextProfile ends the profile of a scenario, and starts that of the next one.
func (b *bench) nextProfile(ctx context.Context, scenario report.Scenario, p *Process) error {
	if b.Profiles == "" || p.name != report.Corbel {
		return nil
	}
	if err := os.Rename(b.profile("current"), b.profile(scenario)); err != nil {
		return err
	}
	_, err := p.Order(ctx, subject.Order{Do: subject.Profile, Profile: b.profile("current")})
	return err
}

// record reads what the process has used, and adds it to the report.
func (b *bench) record(ctx context.Context, scenario report.Scenario, p *Process, took time.Duration, missed bool) error {
	heapProfile := ""
	if p.name == report.Corbel {
		heapProfile = b.profile(scenario + "-heap")
	}
	usage, err := p.Take(ctx, heapProfile)
	if err != nil {
		return err
	}
	if err := b.nextProfile(ctx, scenario, p); err != nil {
		return err
	}
	half := b.half
	b.half = 0
	b.size.Add(scenario, p.name, report.Sample{
		Seconds: took.Seconds(), Missed: missed, HalfSeconds: half.Seconds(), PeakRSS: usage.PeakRSS,
		Requests: usage.Requests, Total: usage.Total(), Writes: usage.Writes(),
		Watches: usage.Watches, Events: usage.Events,
		CPUSeconds: usage.CPU.Seconds(), PeakHeap: usage.PeakHeap, Heap: usage.Heap, Goroutines: usage.Goroutines,
	})
	b.Logf("%d × %d objects, %-6s %-10s %8.3fs (half %.1fs) %6d requests, %d events, CPU %.1fs, RSS %d MiB %v",
		b.Components, b.Objects, p.name, scenario, took.Seconds(), half.Seconds(), usage.Total(), usage.Events, usage.CPU.Seconds(), usage.PeakRSS>>20, usage.Requests)
	return nil
}

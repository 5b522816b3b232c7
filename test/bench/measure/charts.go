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

	"golang.org/x/sync/errgroup"
	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/discovery"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// Versions of the chart.
const firstChart, secondChart = "1", "2"

// lease is the name of the lease of an operator of a fleet: it elects a leader, as operators do that are made with
// pkg/operator.
const lease = "bench"

// charts measures one operator with many components, each of which is a small chart: the workload of the benchmark of
// Flux. Beside that, one is edited right after all others, and the operator brings another version of the chart.
func (b *bench) charts(ctx context.Context, round int) error {
	p, namespace, err := b.start(ctx, report.Corbel, "")
	if err != nil {
		return err
	}
	l := &life{bench: b, process: p, namespace: namespace, load: &operator.Load{}}
	defer func() { l.process.End() }()
	if err := l.measureIdle(ctx, report.Start, 0, false, 0); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{l.installCharts, l.upgradeCharts, l.editOne, l.rest(round), l.restart, l.failOver, l.bringChart, l.deleteAll} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return b.collected(ctx, namespace)
}

// collected waits until the garbage collector has deleted what belonged to the objects of the charts: it would do so
// while the next subject is measured.
func (b *bench) collected(ctx context.Context, namespace string) error {
	ctx, cancel := context.WithTimeout(ctx, b.patience())
	defer cancel()
	for {
		left := 0
		for _, kind := range []schema.GroupVersionKind{appsv1.SchemeGroupVersion.WithKind("ReplicaSetList"), corev1.SchemeGroupVersion.WithKind("SecretList")} {
			list := &metav1.PartialObjectMetadataList{}
			list.SetGroupVersionKind(kind)
			if err := b.List(ctx, list, client.InNamespace(namespace)); err != nil {
				return err
			}
			for _, object := range list.Items {
				if len(object.OwnerReferences) > 0 {
					left++
				}
			}
		}
		if left == 0 {
			return b.nothingLeft(ctx, namespace)
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d objects in namespace %s are not deleted by the garbage collector: %w", left, namespace, ctx.Err())
		case <-time.After(time.Second):
		}
	}
}

// all waits until all components are ready in a revision, or with other manifests if that is 0, and notes when half of them are.
func (l *life) all(ctx context.Context, scenario report.Scenario, revision int64, seen func(*operator.Load), act func() error) error {
	l.reopen = true
	defer func() { l.reopen = false }()
	ready, before := map[string]bool{}, map[string]string{}
	clock := newStopwatch()
	took, err := l.seen(ctx, l.patience(), &operator.LoadList{}, func(event watch.Event) bool {
		load, ok := event.Object.(*operator.Load)
		if !ok {
			return false
		}
		if _, known := before[load.Name]; !known {
			before[load.Name] = load.Status.ProcessingDigest // what the watch shows first is from before
		}
		// A manifest that the operator brings is no revision of its own.
		isNew := load.Status.Revision >= revision && revision > 0 || revision == 0 && load.Status.ProcessingDigest != before[load.Name]
		if isNew && l.isReady(event) && !ready[load.Name] {
			ready[load.Name] = true
			if seen != nil {
				seen(load)
			}
			if 2*len(ready) == l.Components {
				l.half = clock.took()
			}
		}
		return len(ready) == l.Components
	}, func() error { clock = newStopwatch(); return act() })
	if err != nil {
		return fmt.Errorf("%s: %d of %d components are ready: %w", scenario, len(ready), l.Components, err)
	}
	return l.measureIdle(ctx, scenario, took, false, 0)
}

func (l *life) installCharts(ctx context.Context) (err error) {
	end := func() error { return nil }
	if l.Profiles != "" {
		if end, err = l.profileServer(ctx); err != nil {
			return err
		}
	}
	err = l.all(ctx, report.Install, 1, nil, func() error {
		return l.eachLoad(0, func(name string) error {
			return l.Create(ctx, &operator.Load{
				ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}, Spec: operator.LoadSpec{Chart: true, All: "1"},
			})
		})
	})
	return errors.Join(err, end())
}

// profileServer profiles the API server for 20 seconds. The function that it returns waits for the end.
func (l *life) profileServer(ctx context.Context) (end func() error, err error) {
	server, err := discovery.NewDiscoveryClientForConfig(l.env.Config())
	if err != nil {
		return nil, err
	}
	var group errgroup.Group
	group.Go(func() error {
		content, err := server.RESTClient().Get().AbsPath("/debug/pprof/profile").Param("seconds", "20").DoRaw(ctx)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(l.Profiles, "apiserver.pprof"), content, 0o600)
	})
	return group.Wait, nil
}

func (l *life) upgradeCharts(ctx context.Context) error {
	return l.all(ctx, report.ChangeAll, 2, nil, func() error { return l.eachLoad(0, l.changeTo(ctx, "2")) })
}

// editOne edits all components but one, then that one, and measures that one.
func (l *life) editOne(ctx context.Context) error {
	const one = "load-0"
	var edited time.Time
	var took time.Duration
	err := l.all(ctx, report.ChangeAll+"-before-"+report.Edit, 3, func(load *operator.Load) {
		if load.Name == one {
			took = time.Since(edited)
		}
	}, func() error {
		if err := l.eachLoad(1, l.changeTo(ctx, "3")); err != nil {
			return err
		}
		edited = time.Now()
		return l.changeTo(ctx, "3")(one)
	})
	if err != nil {
		return err
	}
	return l.record(ctx, report.Edit, l.process, took, false)
}

// failOver kills the operator while another process stands by, edits a component, and measures the time from the
// election of the other process to the write that the user waits for.
func (l *life) failOver(ctx context.Context) error {
	next, err := l.connect(ctx, report.Corbel, "", l.namespace)
	if err != nil {
		return err
	}
	leader := l.process
	l.process = next
	if err := l.settle(ctx); err != nil { // its watches
		return errors.Join(err, leader.Signal(os.Kill))
	}
	const one = "load-0"
	deployment := &appsv1.Deployment{}
	if err := l.Get(ctx, client.ObjectKey{Namespace: l.namespace, Name: one}, deployment); err != nil {
		return err
	}
	leases, err := l.Watch(ctx, &coordinationv1.LeaseList{}, client.InNamespace(l.namespace))
	if err != nil {
		return err
	}
	defer leases.Stop() // again, if there is an error
	elections := arrivalsOf(leases)
	before := ""
	var killed time.Time
	took, err := l.seen(ctx, l.patience(), &appsv1.DeploymentList{}, func(event watch.Event) bool {
		d, ok := event.Object.(*appsv1.Deployment)
		return ok && d.Name == one && d.Generation > deployment.Generation
	}, func() error {
		killed = time.Now()
		return errors.Join(leader.Signal(os.Kill), l.changeTo(ctx, "4")(one))
	})
	if err != nil {
		return fmt.Errorf("fail-over: %w", err)
	}
	leases.Stop() // the election came before the write; what the watch has shown is read now
	for election := range elections {
		held, ok := election.event.Object.(*coordinationv1.Lease)
		if !ok || ptr.Deref(held.Spec.HolderIdentity, "") == "" {
			continue
		}
		if holder := *held.Spec.HolderIdentity; before == "" {
			before = holder
		} else if holder != before {
			return l.measureIdle(ctx, report.FailOver, took-election.at.Sub(killed), false, l.Components)
		}
	}
	return errors.New("fail-over: the watch of the leases has shown no election")
}

// bringChart starts an operator with another version of the chart.
func (l *life) bringChart(ctx context.Context) error {
	l.process.End()
	return l.all(ctx, report.NewChart, 0, nil, func() (err error) {
		l.process, err = l.connectWith(ctx, report.Corbel, "", subject.Order{Namespace: l.namespace, Chart: secondChart})
		return err
	})
}

func (l *life) changeTo(ctx context.Context, all string) func(name string) error {
	return func(name string) error {
		load := &operator.Load{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}}
		return l.Patch(ctx, load, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"all":"`+all+`"}}`)))
	}
}

// eachLoad calls a function for all components from a number on, several at a time.
func (l *life) eachLoad(from int, do func(name string) error) error {
	var group errgroup.Group
	group.SetLimit(creators)
	for i := from; i < l.Components; i++ {
		group.Go(func() error { return do(fmt.Sprintf("load-%d", i)) })
	}
	return group.Wait()
}

// limitOfCharts measures the bare client. It is done when the Deployments are rolled out.
func (b *bench) limitOfCharts(ctx context.Context, _ int) error {
	p, namespace, err := b.start(ctx, report.Limit, "")
	if err != nil {
		return err
	}
	defer p.End()
	if err := b.record(ctx, report.Start, p, 0, false); err != nil {
		return err
	}
	l := &life{bench: b, process: p, namespace: namespace, load: &operator.Load{}, reopen: true}
	for _, s := range []struct {
		scenario   report.Scenario
		do         string
		cpu, chart string
		generation int64 // that all Deployments get; 0: none is awaited
	}{
		{report.Install, subject.Apply, "1", firstChart, 1},
		{report.ChangeAll, subject.Apply, "2", firstChart, 2},
		{report.NewChart, subject.Apply, "2", secondChart, 0},
		{report.Delete, subject.Delete, "2", secondChart, 0},
	} {
		order := subject.Order{Do: s.do, Namespace: namespace, Objects: subject.Objects{Prefix: "main", N: b.Components, All: s.cpu, Chart: s.chart}}
		act := func() error { _, err := p.Order(ctx, order); return err }
		if s.generation == 0 {
			clock := newStopwatch()
			if err := act(); err != nil {
				return err
			}
			if err := b.record(ctx, s.scenario, p, clock.took(), false); err != nil {
				return err
			}
			continue
		}
		rolledOut := map[string]bool{}
		took, err := l.seen(ctx, l.patience(), &appsv1.DeploymentList{}, func(event watch.Event) bool {
			if d, ok := event.Object.(*appsv1.Deployment); ok && d.Generation >= s.generation && d.Status.ObservedGeneration == d.Generation {
				rolledOut[d.Name] = true
			}
			return len(rolledOut) == b.Components
		}, act)
		if err != nil {
			return fmt.Errorf("%s: %d Deployments are rolled out: %w", s.scenario, len(rolledOut), err)
		}
		if err := b.record(ctx, s.scenario, p, took, false); err != nil {
			return err
		}
	}
	return b.collected(ctx, namespace)
}

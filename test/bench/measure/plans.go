// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
	"github.com/corbel-run/corbel/test/env"
)

// Plans measures what it costs to find out what would be changed, and to roll back. The environment
// must have an audit log with bodies: commands do not count their requests themselves. There is one
// component, nothing rests, and nothing is repaired.
func Plans(ctx context.Context, e *env.Environment, options Options) (report.Size, error) {
	options.Profiles = "" // they are of the life of components
	b, err := newBench(ctx, e, options)
	if err != nil {
		return report.Size{}, err
	}
	if err := b.warmUpPlans(ctx); err != nil {
		return b.size, fmt.Errorf("warm up: %w", err)
	}
	courses := []func(context.Context, int) error{b.corbelPlans, b.kubectl}
	if options.Flux != "" {
		courses = append(courses, b.fluxPlans)
	}
	if options.Helm != "" {
		courses = append(courses, b.helm)
	}
	return b.size, b.alternate(ctx, courses)
}

// warmUpPlans takes a small component through its life, in which the operator makes its digest key,
// and through plans: the server is slow at what it does for the first time.
func (b *bench) warmUpPlans(ctx context.Context) error {
	if err := b.warmUp(ctx); err != nil {
		return err
	}
	small := *b
	small.Objects, small.size = 10, report.Size{}
	small.Logf = func(string, ...any) {}
	return small.corbelPlans(ctx, 0)
}

// corbelPlans measures the plans of an operator made with Corbel, a change and a rollback of it.
func (b *bench) corbelPlans(ctx context.Context, _ int) error {
	p, namespace, err := b.start(ctx, report.Corbel, "")
	if err != nil {
		return err
	}
	l := &life{bench: b, process: p, namespace: namespace, load: &operator.Load{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main"},
		Spec:       operator.LoadSpec{Objects: b.Objects, All: "1", One: "1"},
	}}
	defer p.End()
	if err := b.plan(ctx, p, namespace, report.PlanInstall, b.objects("1", "1"), b.Objects); err != nil {
		return err
	}
	if _, err := l.ready(ctx, func() error { return l.Create(ctx, l.load) }); err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	if err := b.planChanges(ctx, p, namespace); err != nil {
		return err
	}
	if err := b.plan(ctx, p, namespace, report.PlanDelete, b.objects("1", "1"), b.Objects); err != nil {
		return err
	}
	err = b.audited(ctx, report.ChangeAll, report.Corbel, l.settled(func(ctx context.Context) (time.Duration, error) {
		return l.ready(ctx, l.patched(ctx, func(load *operator.Load) { load.Spec.All = "2" }))
	}))
	if err != nil {
		return err
	}
	if err := b.audited(ctx, report.Rollback, report.Corbel, l.settled(l.rollBack)); err != nil {
		return err
	}
	if err := b.allAre(ctx, namespace, "1"); err != nil {
		return err
	}
	if _, err := l.seen(ctx, l.patience(), &operator.LoadList{}, gone, func() error { return l.Delete(ctx, l.load) }); err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	if err := l.settle(ctx); err != nil {
		return err
	}
	return b.nothingLeft(ctx, namespace)
}

// fluxPlans measures the comparison of Flux, which has none for a deletion.
func (b *bench) fluxPlans(ctx context.Context, _ int) error {
	p, namespace, err := b.start(ctx, report.Flux, b.Flux)
	if err != nil {
		return err
	}
	defer p.End()
	do := func(what string, objects subject.Objects) func(context.Context) (time.Duration, subject.Usage, error) {
		return order(p, subject.Order{Do: what, Namespace: namespace, Objects: objects})
	}
	if err := b.plan(ctx, p, namespace, report.PlanInstall, b.objects("1", "1"), b.Objects); err != nil {
		return err
	}
	if _, _, err := do(subject.Apply, b.objects("1", "1"))(ctx); err != nil {
		return err
	}
	if err := b.planChanges(ctx, p, namespace); err != nil {
		return err
	}
	if err := b.audited(ctx, report.ChangeAll, report.Flux, do(subject.Apply, b.objects("2", "1"))); err != nil {
		return err
	}
	if _, _, err := do(subject.Delete, b.objects("2", "1"))(ctx); err != nil {
		return err
	}
	return b.nothingLeft(ctx, namespace)
}

// planChanges measures plans of objects that exist.
func (b *bench) planChanges(ctx context.Context, p *Process, namespace string) error {
	for _, planned := range []struct {
		scenario report.Scenario
		objects  subject.Objects
		changes  int
	}{
		{report.PlanUnchanged, b.objects("1", "1"), 0},
		{report.PlanOne, b.objects("1", "2"), 1},
		{report.PlanAll, b.objects("2", "1"), b.Objects},
	} {
		if err := b.plan(ctx, p, namespace, planned.scenario, planned.objects, planned.changes); err != nil {
			return err
		}
	}
	return nil
}

func (b *bench) plan(ctx context.Context, p *Process, namespace string, scenario report.Scenario, objects subject.Objects, changes int) error {
	what := subject.Plan
	if scenario == report.PlanDelete {
		what = subject.PlanDeletion
	}
	return b.audited(ctx, scenario, p.name, order(p, subject.Order{Do: what, Namespace: namespace, Objects: objects, Changes: changes}))
}

// order gives an order, and returns how long it took and what the process used for it.
func order(p *Process, o subject.Order) func(context.Context) (time.Duration, subject.Usage, error) {
	return func(ctx context.Context) (time.Duration, subject.Usage, error) {
		if _, err := p.Take(ctx, ""); err != nil { // what was used before
			return 0, subject.Usage{}, err
		}
		clock := newStopwatch()
		if _, err := p.Order(ctx, o); err != nil {
			return 0, subject.Usage{}, err
		}
		took := clock.took()
		usage, err := p.Take(ctx, "")
		return took, usage, err
	}
}

// settled does something that the operator works on, waits until the operator has nothing to do any
// more, and returns what it used.
func (l *life) settled(do func(context.Context) (time.Duration, error)) func(context.Context) (time.Duration, subject.Usage, error) {
	return func(ctx context.Context) (time.Duration, subject.Usage, error) {
		if _, err := l.process.Take(ctx, ""); err != nil {
			return 0, subject.Usage{}, err
		}
		took, err := do(ctx)
		if err == nil {
			err = l.settle(ctx)
		}
		if err != nil {
			return took, subject.Usage{}, err
		}
		usage, err := l.process.Take(ctx, "")
		return took, usage, err
	}
}

// settle waits until the operator has nothing to do any more.
func (l *life) settle(ctx context.Context) error {
	patient, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	_, err := l.process.Order(patient, subject.Order{Do: subject.Idle})
	return err
}

// rollBack rolls the component back to its first revision, by the annotation.
func (l *life) rollBack(ctx context.Context) (time.Duration, error) {
	rolledBack := func(event watch.Event) bool {
		load, ok := event.Object.(*operator.Load)
		if !ok || len(load.Status.History) == 0 || load.Status.History[0].RollbackTo != 1 {
			return false
		}
		return load.Status.History[0].Revision == load.Status.Revision && load.Status.IsReady()
	}
	return l.seen(ctx, l.patience(), &operator.LoadList{}, rolledBack, l.patched(ctx, func(load *operator.Load) {
		load.Annotations = map[string]string{operator.Name + "/" + vocabulary.AnnotationRollbackTo: "1"}
	}))
}

// patched returns a function that edits the component.
func (l *life) patched(ctx context.Context, edit func(*operator.Load)) func() error {
	return func() error {
		patch := client.MergeFrom(l.load.DeepCopyObject().(*operator.Load))
		edit(l.load)
		return l.Patch(ctx, l.load, patch)
	}
}

// allAre fails if not all objects have a value: then a subject has not done the work that was measured.
func (b *bench) allAre(ctx context.Context, namespace, want string) error {
	var objects corev1.ConfigMapList
	if err := b.List(ctx, &objects, client.InNamespace(namespace)); err != nil {
		return err
	}
	count := 0
	for _, object := range objects.Items {
		if object.Data["all"] == want {
			count++
		}
	}
	if count != b.Objects {
		return fmt.Errorf("%d ConfigMaps of %d in namespace %s have the value %q", count, b.Objects, namespace, want)
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// life is that of one component, and of the operator that looks after it.
type life struct {
	*bench
	process   *Process
	namespace string
	load      *operator.Load
	// reopen lets seen open a watch again that ended. What it waits for must show in the state of the objects.
	reopen bool
}

// corbel measures an operator made with Corbel.
func (b *bench) corbel(ctx context.Context, round int) error {
	p, namespace, err := b.start(ctx, report.Corbel, "")
	if err != nil {
		return err
	}
	l := &life{bench: b, process: p, namespace: namespace, load: &operator.Load{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "main"},
		Spec:       operator.LoadSpec{Objects: b.Objects, All: "1", One: "1", Note: "1"},
	}}
	defer func() { l.process.End() }()
	if err := l.measureIdle(ctx, report.Start, 0, false, 0); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{l.install, l.changes, l.rest(round), l.restart, l.repairs, l.delete} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return b.nothingLeft(ctx, namespace)
}

// measureIdle waits until the operator has nothing to do any more, and then records the
// numbers: what it sends after the work is done is part of the price.
func (l *life) measureIdle(ctx context.Context, scenario report.Scenario, took time.Duration, missed bool, reconciles int) error {
	patient, cancel := context.WithTimeout(ctx, l.patience())
	defer cancel()
	answer, err := l.process.Order(patient, subject.Order{Do: subject.Idle, Reconciles: reconciles})
	if err != nil {
		return err
	}
	if scenario == report.Restart { // there is nothing to see from outside
		took = answer.Done.Sub(l.process.Started)
	}
	return l.record(ctx, scenario, l.process, took, missed)
}

func (l *life) install(ctx context.Context) error {
	took, err := l.ready(ctx, func() error { return l.Create(ctx, l.load) })
	if err != nil {
		return fmt.Errorf("install: %w", err)
	}
	if err := l.measureIdle(ctx, report.Install, took, false, 0); err != nil {
		return err
	}
	return l.measureStatus(ctx)
}

func (l *life) changes(ctx context.Context) error {
	for _, change := range []struct {
		scenario report.Scenario
		to       operator.LoadSpec
	}{
		{report.ChangeOne, operator.LoadSpec{Objects: l.Objects, All: "1", One: "2", Note: "1"}},
		{report.Unchanged, operator.LoadSpec{Objects: l.Objects, All: "1", One: "2", Note: "2"}},
		{report.ChangeAll, operator.LoadSpec{Objects: l.Objects, All: "2", One: "2", Note: "2"}},
	} {
		took, err := l.ready(ctx, func() error {
			patch := client.MergeFrom(l.load.DeepCopyObject().(*operator.Load))
			l.load.Spec = change.to
			return l.Patch(ctx, l.load, patch)
		})
		if err == nil {
			err = l.measureIdle(ctx, change.scenario, took, false, 0)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", change.scenario, err)
		}
	}
	return nil
}

// rest watches the operator while there is nothing to do, in the first round only.
func (l *life) rest(round int) func(context.Context) error {
	return func(ctx context.Context) error {
		if round > 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(l.Rest):
		}
		return l.record(ctx, report.Rest, l.process, l.Rest, false)
	}
}

func (l *life) restart(ctx context.Context) error {
	l.process.End()
	var err error
	if l.process, err = l.connect(ctx, report.Corbel, "", l.namespace); err != nil {
		return err
	}
	return l.measureIdle(ctx, report.Restart, 0, false, l.Components)
}

func (l *life) delete(ctx context.Context) error {
	took, err := l.seen(ctx, l.patience(), &operator.LoadList{}, gone, func() error { return l.Delete(ctx, l.load) })
	if err != nil {
		return fmt.Errorf("delete: %w", err)
	}
	return l.measureIdle(ctx, report.Delete, took, false, 0)
}

// ready does something and waits until the component is ready in its newest generation.
func (l *life) ready(ctx context.Context, act func() error) (time.Duration, error) {
	return l.seen(ctx, l.patience(), &operator.LoadList{}, l.isReady, act)
}

// measureStatus reports the size of the component and of the record that is kept elsewhere.
func (l *life) measureStatus(ctx context.Context) error {
	if err := l.Get(ctx, client.ObjectKeyFromObject(l.load), l.load); err != nil {
		return err
	}
	content, err := json.Marshal(l.load)
	if err != nil {
		return err
	}
	secrets := &corev1.SecretList{}
	if err := l.List(ctx, secrets, client.InNamespace(l.namespace)); err != nil {
		return err
	}
	l.size.Status = report.StatusSize{Component: len(content), Secrets: len(secrets.Items)}
	for _, secret := range secrets.Items {
		for _, value := range secret.Data {
			l.size.Status.SecretBytes += len(value)
		}
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/report"
)

// creators is how many components are created at a time.
const creators = 16

// fleet measures one operator with many components: what it takes to install all, to
// start again, and to delete all.
func (b *bench) fleet(ctx context.Context, round int) error {
	p, namespace, err := b.start(ctx, report.Corbel, "")
	if err != nil {
		return err
	}
	l := &life{bench: b, process: p, namespace: namespace, load: &operator.Load{}}
	defer func() { l.process.End() }()
	if err := l.measureIdle(ctx, report.Start, 0, false, 0); err != nil {
		return err
	}
	for _, part := range []func(context.Context) error{l.installAll, l.rest(round), l.restart, l.deleteAll} {
		if err := part(ctx); err != nil {
			return err
		}
	}
	return b.nothingLeft(ctx, namespace)
}

func (l *life) installAll(ctx context.Context) error {
	ready := map[string]bool{}
	took, err := l.seen(ctx, l.patience(), &operator.LoadList{}, func(event watch.Event) bool {
		if l.isReady(event) {
			ready[event.Object.(*operator.Load).Name] = true
		}
		return len(ready) == l.Components
	}, func() error { return l.createAll(ctx) })
	if err != nil {
		return fmt.Errorf("install: %d of %d components are ready: %w", len(ready), l.Components, err)
	}
	return l.measureIdle(ctx, report.Install, took, false, 0)
}

func (l *life) createAll(ctx context.Context) error {
	var group errgroup.Group
	group.SetLimit(creators)
	for i := range l.Components {
		group.Go(func() error {
			return l.Create(ctx, &operator.Load{
				ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: fmt.Sprintf("load-%d", i)},
				Spec:       operator.LoadSpec{Objects: l.Objects, All: "1", One: "1"},
			})
		})
	}
	return group.Wait()
}

func (l *life) deleteAll(ctx context.Context) error {
	left := l.Components
	took, err := l.seen(ctx, l.patience(), &operator.LoadList{}, func(event watch.Event) bool {
		if gone(event) {
			left--
		}
		return left == 0
	}, func() error {
		for { // the server does not come to the end of many in a minute
			err := l.DeleteAllOf(ctx, &operator.Load{}, client.InNamespace(l.namespace))
			if !apierrors.IsTimeout(err) {
				return err
			}
		}
	})
	if err != nil {
		return fmt.Errorf("delete: %d of %d components are left: %w", left, l.Components, err)
	}
	return l.measureIdle(ctx, report.Delete, took, false, 0)
}

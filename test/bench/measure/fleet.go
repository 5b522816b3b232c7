// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"fmt"
	"time"

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
	return l.eachLoad(0, func(name string) error {
		return l.Create(ctx, &operator.Load{
			ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name},
			Spec:       operator.LoadSpec{Objects: l.Objects, All: "1", One: "1"},
		})
	})
}

// leading is for how long the operator leads before the fleet is deleted: longer than a creation of the leader before can take.
const leading = 80 * time.Second

func (l *life) deleteAll(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(leading):
	}
	if _, err := l.process.Take(ctx, ""); err != nil { // of the time before
		return err
	}
	// The server ends a watch that falls behind, so this one asks for metadata only, from now on.
	loads := &metav1.PartialObjectMetadataList{}
	loads.SetGroupVersionKind(operator.GroupVersion.WithKind("LoadList"))
	if err := l.List(ctx, loads, client.InNamespace(l.namespace), client.Limit(1)); err != nil {
		return err
	}
	left := l.Components
	took, err := l.seen(ctx, l.patience(), loads, func(event watch.Event) bool {
		if gone(event) {
			left--
		}
		return left == 0
	}, func() error {
		return l.eachLoad(0, func(name string) error {
			return l.Delete(ctx, &operator.Load{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: name}})
		})
	}, &client.ListOptions{Raw: &metav1.ListOptions{ResourceVersion: loads.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("delete: %d of %d components are left: %w", left, l.Components, err)
	}
	return l.measureIdle(ctx, report.Delete, took, false, 0)
}

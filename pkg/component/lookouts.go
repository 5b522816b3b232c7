// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"sync"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/lookout"
	"github.com/corbel-run/corbel/pkg/cluster"
)

// lookouts wake components when what they depend on, and do not own, has changed.
// The methods do nothing on nil.
type lookouts struct {
	// home watches what components refer to, with the identity of the operator.
	home   *lookout.Lookout
	target cluster.Target

	mu sync.Mutex
	// abroad is where components wait for objects in their targets.
	abroad map[client.ObjectKey]*lookout.Lookout
}

func newLookouts(config *rest.Config, wake func(client.ObjectKey)) (*lookouts, error) {
	target, err := cluster.New(config, cluster.Options{})
	if err != nil {
		return nil, err
	}
	return &lookouts{
		home: lookout.New(target, lookout.Options{Wake: wake}), target: target,
		abroad: map[client.ObjectKey]*lookout.Lookout{},
	}, nil
}

// run ends everything when the context ends.
func (l *lookouts) run(ctx context.Context) error {
	<-ctx.Done()
	l.home.Close()
	l.target.Close()
	return nil
}

// refer says what a component refers to, as its pass has read it.
func (l *lookouts) refer(key client.ObjectKey, points []lookout.Point) {
	if l != nil {
		l.home.Set(key, points)
	}
}

// wait says what a component waits for in its target; where may be nil.
func (l *lookouts) wait(key client.ObjectKey, where *lookout.Lookout, points []lookout.Point) {
	if l == nil {
		return
	}
	if where == nil {
		points = nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before := l.abroad[key]; before != nil && (before != where || len(points) == 0) {
		before.Set(key, nil)
		delete(l.abroad, key)
	}
	if len(points) > 0 {
		l.abroad[key] = where
		where.Set(key, points)
	}
}

// forget is for components that depend on nothing any more.
func (l *lookouts) forget(key client.ObjectKey) {
	l.refer(key, nil)
	l.wait(key, nil, nil)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package measure

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/test/bench/operator"
)

type stopwatch time.Time

func newStopwatch() stopwatch { return stopwatch(time.Now()) }

func (s stopwatch) took() time.Duration { return time.Since(time.Time(s)) }

// errUnseen means that something did not happen in time.
var errUnseen = errors.New("it did not happen")

// seen opens a watch, does something, and returns how long it took until an event of
// the watch showed what is waited for, counted from before it was done.
func (l *life) seen(ctx context.Context, patience time.Duration, list client.ObjectList, shows func(watch.Event) bool, act func() error, selectors ...client.ListOption) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	events, err := l.Watch(ctx, list, append(selectors, client.InNamespace(l.namespace))...)
	if err != nil {
		return 0, err
	}
	defer func() { events.Stop() }()
	arrivals := arrivalsOf(events)
	clock := newStopwatch()
	if err := act(); err != nil {
		return 0, err
	}
	var last any
	for {
		select {
		case arrived, open := <-arrivals:
			if !open && l.reopen && ctx.Err() == nil {
				// The server ends a watch that does not keep up. Another one shows all objects again.
				if events, err = l.Watch(ctx, list, append(selectors, client.InNamespace(l.namespace))...); err != nil {
					return clock.took(), err
				}
				arrivals = arrivalsOf(events)
				continue
			}
			if !open {
				return clock.took(), fmt.Errorf("the observer's watch ended: %w", errUnseen)
			}
			if shows(arrived.event) {
				return arrived.at.Sub(time.Time(clock)), nil
			}
			last = arrived.event.Object
		case <-ctx.Done():
			return clock.took(), fmt.Errorf("%w within %s; the last event shows: %s", errUnseen, patience, state(last))
		}
	}
}

// arrival is an event and when it came.
type arrival struct {
	event watch.Event
	at    time.Time
}

// manyEvents is more than come while something is done.
const manyEvents = 1 << 16

// arrivalsOf reads the events of a watch as they come: the server ends one that is not read.
func arrivalsOf(events watch.Interface) <-chan arrival {
	arrivals := make(chan arrival, manyEvents)
	go func() {
		defer close(arrivals)
		for event := range events.ResultChan() {
			arrivals <- arrival{event, time.Now()}
		}
	}()
	return arrivals
}

// isReady reports whether the component is ready in the generation that we made.
func (l *life) isReady(event watch.Event) bool {
	load, ok := event.Object.(*operator.Load)
	return ok && load.Generation >= l.load.Generation && load.Status.IsReady() && load.Status.ObservedGeneration == load.Generation
}

func gone(event watch.Event) bool { return event.Type == watch.Deleted }

func state(object any) string {
	load, ok := object.(*operator.Load)
	if !ok {
		return fmt.Sprintf("%T", object)
	}
	state, reason, message := load.Status.GetState()
	return fmt.Sprintf("%s (%s): %s", state, reason, message)
}

// nothingLeft fails if a subject has left objects behind, or a record of them, for then
// it has not done the work that was measured. The Secret with the history of a component is left to
// the garbage collector, which the environment does not have.
func (b *bench) nothingLeft(ctx context.Context, namespace string) error {
	objects, records := &corev1.ConfigMapList{}, &corev1.SecretList{}
	for _, list := range []client.ObjectList{objects, records} {
		if err := b.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
	}
	records.Items = slices.DeleteFunc(records.Items, func(secret corev1.Secret) bool {
		return secret.Type == operator.Name+"/revisions" && len(secret.OwnerReferences) == 1
	})
	objects.Items = slices.DeleteFunc(objects.Items, func(object corev1.ConfigMap) bool { return object.Name == "kube-root-ca.crt" })
	if len(objects.Items)+len(records.Items) > 0 {
		return fmt.Errorf("%d ConfigMaps and %d Secrets were not deleted in namespace %s", len(objects.Items), len(records.Items), namespace)
	}
	return nil
}

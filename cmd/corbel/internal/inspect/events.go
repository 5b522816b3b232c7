// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// ObjectEvent is an event about an object.
type ObjectEvent struct {
	// Last is when it happened last, Count how often.
	Last  time.Time
	Count int32
	// Type is Normal or Warning.
	Type, Reason, Message string
	// Object names the object, such as "Pod market/corner-web-0".
	Object string
}

// Events returns the events about a component, its dependents and the pods of its workloads, the oldest first. What
// cannot be read is in the error; the rest comes with it.
func (r *Reader) Events(ctx context.Context, c Component, dependents []Dependent) ([]ObjectEvent, error) {
	return r.EventsOf(ctx, []Component{c}, dependents)
}

// EventsOf is Events for several components, and reads each namespace once.
func (r *Reader) EventsOf(ctx context.Context, components []Component, dependents []Dependent) ([]ObjectEvent, error) {
	about, namespaces := map[types.UID]bool{}, map[string]bool{}
	for _, c := range components {
		about[c.Object.GetUID()] = true
		namespaces[eventNamespace(c.Object.GetNamespace())] = true
	}
	for _, d := range dependents {
		if d.Object != nil {
			about[d.Object.GetUID()] = true
			namespaces[eventNamespace(d.Item.Namespace)] = true
		}
	}
	pods, err := r.Pods(ctx, dependents)
	refused := []error{err}
	for _, list := range pods {
		for _, pod := range list {
			about[pod.GetUID()] = true
			if owner := metav1.GetControllerOf(pod); owner != nil {
				about[owner.UID] = true
			}
		}
	}
	var events []ObjectEvent
	for namespace := range namespaces {
		list := &corev1.EventList{}
		if err := r.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			refused = append(refused, fmt.Errorf("list the events in namespace %s: %w", namespace, err))
			continue
		}
		for _, event := range list.Items {
			if about[event.InvolvedObject.UID] {
				events = append(events, objectEvent(event))
			}
		}
	}
	slices.SortStableFunc(events, func(a, b ObjectEvent) int {
		return cmp.Or(a.Last.Compare(b.Last), cmp.Compare(a.Object, b.Object), cmp.Compare(a.Reason, b.Reason))
	})
	return events, errors.Join(refused...)
}

// eventNamespace returns where events about objects of a namespace are.
func eventNamespace(namespace string) string { return cmp.Or(namespace, metav1.NamespaceDefault) }

func objectEvent(event corev1.Event) ObjectEvent {
	e := ObjectEvent{Last: event.LastTimestamp.Time, Count: max(event.Count, 1), Type: event.Type, Reason: event.Reason, Message: event.Message}
	if event.Series != nil {
		e.Last, e.Count = event.Series.LastObservedTime.Time, event.Series.Count
	} else if e.Last.IsZero() {
		e.Last = cmp.Or(event.EventTime.Time, event.CreationTimestamp.Time)
	}
	e.Object = event.InvolvedObject.Kind + " " + client.ObjectKey{Namespace: event.InvolvedObject.Namespace, Name: event.InvolvedObject.Name}.String()
	if event.InvolvedObject.Namespace == "" {
		e.Object = event.InvolvedObject.Kind + " " + event.InvolvedObject.Name
	}
	return e
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apitypes "k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/changes"
	"github.com/corbel-run/corbel/test/wire"
)

// receiver is another system, which is notified of ConfigMaps.
type receiver struct {
	mu      sync.Mutex
	values  map[string]string // by name
	history []entry
}

// entry is one notification.
type entry struct {
	by, action, name, value string
	uid                     apitypes.UID
	old                     string
	hadFinalizer            bool
}

func newReceiver() *receiver { return &receiver{values: map[string]string{}} }

func (w *receiver) record(entry entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, entry)
	if entry.action == "delete" {
		delete(w.values, entry.name)
	} else {
		w.values[entry.name] = entry.value
	}
}

func (w *receiver) value(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.values[name]
}

// calls returns the notifications, as "action name=value".
func (w *receiver) calls() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	var calls []string
	for _, entry := range w.history {
		call := entry.action + " " + entry.name + "=" + entry.value
		if entry.old != "" {
			call += " was " + entry.old
		}
		calls = append(calls, call)
	}
	return calls
}

func (w *receiver) text() string { return strings.Join(w.calls(), ", ") }

// notifiedBy reports whether an operator has sent a notification of an object.
func (w *receiver) notifiedBy(operator, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.history, func(entry entry) bool { return entry.by == operator && entry.name == name })
}

// leaks returns what the receiver still has, the objects of which the last notification
// was no deletion, except for one, and those that were not added first.
func (w *receiver) leaks(except string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	last := map[apitypes.UID]entry{}
	added := map[apitypes.UID]bool{}
	var leaks []string
	for _, entry := range w.history {
		last[entry.uid] = entry
		added[entry.uid] = added[entry.uid] || entry.action == "add"
		if !added[entry.uid] && entry.action != "delete" {
			leaks = append(leaks, fmt.Sprintf("%+v was not added before", entry))
		}
		if !entry.hadFinalizer && entry.action != "delete" {
			leaks = append(leaks, fmt.Sprintf("%+v had no finalizer of ours", entry))
		}
	}
	for _, entry := range last {
		if entry.name != except && entry.action != "delete" {
			leaks = append(leaks, fmt.Sprintf("%+v was not deleted", entry))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.values)) {
		if name != except {
			leaks = append(leaks, "the receiver has "+name)
		}
	}
	return leaks
}

// watcher notifies a receiver. What it does goes through the gate, as if the receiver were a server.
func (w *receiver) watcher(by string, g *wire.Gate) changes.Watcher[*corev1.ConfigMap] {
	record := func(action string) func(context.Context, *corev1.ConfigMap) error {
		return func(_ context.Context, obj *corev1.ConfigMap) error {
			return g.Do("call", func() error {
				w.record(entry{by: by, action: action, name: obj.Name, value: obj.Data["value"], uid: obj.UID, hadFinalizer: slices.Contains(obj.Finalizers, finalizer)})
				return nil
			})
		}
	}
	return changes.Watcher[*corev1.ConfigMap]{
		AddFunc: record("add"), DeleteFunc: record("delete"), SyncFunc: record("sync"),
		UpdateFunc: func(_ context.Context, oldObj, newObj *corev1.ConfigMap) error {
			return g.Do("call", func() error {
				w.record(entry{
					by: by, action: "update", name: newObj.Name, value: newObj.Data["value"], old: oldObj.Data["value"],
					uid: newObj.UID, hadFinalizer: slices.Contains(newObj.Finalizers, finalizer),
				})
				return nil
			})
		},
	}
}

// opinionated is the watcher with a finalizer.
func (w *receiver) opinionated(by string, g *wire.Gate) *changes.OpinionatedWatcher[*corev1.ConfigMap] {
	return &changes.OpinionatedWatcher[*corev1.ConfigMap]{Watcher: w.watcher(by, g), Finalizer: finalizer}
}

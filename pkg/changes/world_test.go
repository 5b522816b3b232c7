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
)

// world is another system, which is told about ConfigMaps.
type world struct {
	mu      sync.Mutex
	values  map[string]string // by name
	history []entry
}

// entry is one thing that the world was told.
type entry struct {
	by, action, name, value string
	uid                     apitypes.UID
	old                     string
	marked                  bool // the object bore our finalizer
}

func newWorld() *world { return &world{values: map[string]string{}} }

func (w *world) record(entry entry) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.history = append(w.history, entry)
	if entry.action == "delete" {
		delete(w.values, entry.name)
	} else {
		w.values[entry.name] = entry.value
	}
}

func (w *world) value(name string) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.values[name]
}

// calls returns what was told, as "action name=value".
func (w *world) calls() []string {
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

func (w *world) text() string { return strings.Join(w.calls(), ", ") }

// toldBy reports whether an operator has told something about an object.
func (w *world) toldBy(operator, name string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.ContainsFunc(w.history, func(entry entry) bool { return entry.by == operator && entry.name == name })
}

// leaks returns what the world still has, the objects that were last told to be
// there, except for one, and those that came to be there without having been added.
func (w *world) leaks(except string) []string {
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
		if !entry.marked && entry.action != "delete" {
			leaks = append(leaks, fmt.Sprintf("%+v was not claimed", entry))
		}
	}
	for _, entry := range last {
		if entry.name != except && entry.action != "delete" {
			leaks = append(leaks, fmt.Sprintf("%+v was not deleted", entry))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.values)) {
		if name != except {
			leaks = append(leaks, "the world has "+name)
		}
	}
	return leaks
}

// watcher tells a world. What it does goes through the gate, as if the world were a server.
func (w *world) watcher(by string, g *gate) changes.Watcher[*corev1.ConfigMap] {
	tell := func(action string) func(context.Context, *corev1.ConfigMap) error {
		return func(_ context.Context, obj *corev1.ConfigMap) error {
			return g.request(func() error {
				w.record(entry{by: by, action: action, name: obj.Name, value: obj.Data["value"], uid: obj.UID, marked: slices.Contains(obj.Finalizers, finalizer)})
				return nil
			})
		}
	}
	return changes.Watcher[*corev1.ConfigMap]{
		AddFunc: tell("add"), DeleteFunc: tell("delete"), SyncFunc: tell("sync"),
		UpdateFunc: func(_ context.Context, oldObj, newObj *corev1.ConfigMap) error {
			return g.request(func() error {
				w.record(entry{
					by: by, action: "update", name: newObj.Name, value: newObj.Data["value"], old: oldObj.Data["value"],
					uid: newObj.UID, marked: slices.Contains(newObj.Finalizers, finalizer),
				})
				return nil
			})
		},
	}
}

// opinionated is the watcher with a finalizer.
func (w *world) opinionated(by string, g *gate) *changes.OpinionatedWatcher[*corev1.ConfigMap] {
	return &changes.OpinionatedWatcher[*corev1.ConfigMap]{Watcher: w.watcher(by, g), Finalizer: finalizer}
}

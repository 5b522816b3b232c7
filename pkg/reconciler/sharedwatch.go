// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"context"
	"math"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/informer"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// sharedState is what the metadata of a shared type say; zero if the type does not exist, or does not have the label.
type sharedState struct {
	uid        apitypes.UID
	generation int64
	mark       string
	deleting   bool
}

// sharedEvent is a state and its version.
type sharedEvent struct {
	version string
	state   sharedState
}

// sharedView is what is known of a type by requests, and what the watch has shown.
type sharedView struct {
	known, seen sharedEvent
	// awaited: the type was not ready. Then each newer version is news.
	awaited bool
	// busy: a call looks at the type, so that the watch may show what it has written.
	busy bool
}

// isStale reports whether the type may be different from what is known.
func (v *sharedView) isStale() bool {
	return isNewer(v.seen.version, v.known.version) && (v.awaited || v.seen.state != v.known.state)
}

// isNewer reports whether a version is newer than another one, or may be.
func isNewer(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return version != "" && (err != nil || order > 0)
}

// sharedWatch watches the metadata of the shared types of the reconciler. It implements informer.Handler.
type sharedWatch struct {
	shared  *sharedTypes
	running sync.WaitGroup

	mu       sync.Mutex
	cancel   context.CancelFunc // nil before it starts
	closed   bool
	watching bool
	views    map[string]*sharedView
}

// start starts the watch, unless it runs.
func (w *sharedWatch) start() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cancel != nil || w.closed {
		return
	}
	var ctx context.Context
	ctx, w.cancel = context.WithCancel(context.Background())
	r := w.shared.reconciler
	source := informer.MetadataSource[sharedEvent]{
		Client: r.target.Objects().Metadata(schema.GroupVersionResource{Group: definitionKind.Group, Version: "v1", Resource: "customresourcedefinitions"}),
		Keep: func(object metav1.Object) sharedEvent {
			return sharedEvent{object.GetResourceVersion(), sharedState{
				object.GetUID(), object.GetGeneration(), cmp.Or(object.GetAnnotations()[r.name+"/"+v1alpha1.LabelShared], observe.Unmarked), object.GetDeletionTimestamp() != nil,
			}}
		},
	}
	label := metav1.ListOptions{LabelSelector: r.name + "/" + v1alpha1.LabelShared}
	w.running.Go(func() { informer.NewReflector(source, w, label).Run(ctx) })
}

// close ends the watch.
func (w *sharedWatch) close() {
	w.mu.Lock()
	if w.closed = true; w.cancel != nil {
		w.cancel()
	}
	w.mu.Unlock()
	w.running.Wait()
}

// begin is called before a call looks at a type, and end afterwards.
func (w *sharedWatch) begin(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.views[name].busy = true
}

func (w *sharedWatch) end(name string) { w.change(name, func(v *sharedView) { v.busy = false }) }

// know records how a type was read, or answered.
func (w *sharedWatch) know(name string, live plan.Observation) {
	event := sharedEvent{version: live.ResourceVersion}
	if live.Shared != "" {
		event.state = sharedState{live.UID, live.Generation, live.Shared, !live.DeletionTimestamp.IsZero()}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.views[name]
	v.known, v.awaited = event, live.Existence != plan.Present || live.Status.Readiness != plan.Ready || event.state.deleting
}

// state reports whether a type may be different from what is known, and whether the watch shows changes at the moment.
func (w *sharedWatch) state(name string) (stale, watching bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.views[name].isStale(), w.watching
}

// maxRequeued is how many owners are requeued if a shared type has changed that was ready. One of them is enough to repair it.
const maxRequeued = 3

// change changes what is known of a type, and requeues owners that need it if it may be different.
func (w *sharedWatch) change(name string, change func(*sharedView)) {
	w.mu.Lock()
	v := w.views[name]
	if v == nil {
		w.mu.Unlock()
		return
	}
	change(v)
	notify, limit := !v.busy && v.isStale(), maxRequeued
	if v.awaited {
		limit = math.MaxInt
	}
	w.mu.Unlock()
	if !notify {
		return
	}
	r, key := w.shared.reconciler, plan.Key{Group: definitionKind.Group, Kind: definitionKind.Kind, Name: name}
	for _, owner := range r.watched.users(key, limit) {
		r.settings.changed(owner, Change{Key: Key(key), What: EventContent})
	}
}

// Listing implements informer.Handler.
func (w *sharedWatch) Listing() {}

// Replace implements informer.Handler.
func (w *sharedWatch) Replace(objects map[apitypes.NamespacedName]sharedEvent, version string, _ bool) {
	for name := range w.views {
		event, there := objects[apitypes.NamespacedName{Name: name}]
		if !there {
			event.version = version
		}
		w.change(name, func(v *sharedView) { v.seen = event })
	}
}

// Set implements informer.Handler.
func (w *sharedWatch) Set(object apitypes.NamespacedName, event sharedEvent, _ string) {
	w.change(object.Name, func(v *sharedView) { v.seen = event })
}

// Delete implements informer.Handler.
func (w *sharedWatch) Delete(object apitypes.NamespacedName, _ sharedEvent, version string) {
	w.change(object.Name, func(v *sharedView) { v.seen = sharedEvent{version: version} })
}

// Progress implements informer.Handler.
func (w *sharedWatch) Progress(string) {}

// Watching implements informer.Handler.
func (w *sharedWatch) Watching(watching bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watching = watching
}

// Failed implements informer.Handler. A user that may not list or watch may be given the right later.
func (w *sharedWatch) Failed(_ error, attempt int) (time.Duration, bool) {
	return backoff.Jitter(backoff.Delay(attempt, time.Second, lookEvery), 1, backoff.Random()), true
}

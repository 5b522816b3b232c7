// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/metrics"
	"github.com/corbel-run/corbel/pkg/manifests"
)

const (
	// holdBase is how long manifests stay after they changed although nothing that
	// they follow from did; with every further change it doubles up to holdLimit.
	holdBase  = time.Hour
	holdLimit = 6 * time.Hour
)

// renders keeps a generator that renders something else every time, such as a
// random password or the time, from making the objects change with every pass. A
// change that has no cause in the component is let through at once, because it
// may come from something that the generator looks up. The next one has to wait;
// until then the manifests that were let through last are applied in its place.
type renders struct {
	mu     sync.Mutex
	byKey  map[client.ObjectKey]rendering
	probes map[client.ObjectKey]probe
}

// rendering is what was let through last.
type rendering struct {
	inputs string // the digest of the component
	digest string // of the objects
	// changes counts the changes without a cause.
	changes int
	// until is when the next change is let through; before, objects are applied.
	until   time.Time
	objects []client.Object
}

func newRenders() *renders {
	return &renders{byKey: map[client.ObjectKey]rendering{}, probes: map[client.ObjectKey]probe{}}
}

// choose returns the objects to apply, and whether they are not those that were
// rendered. Inputs is the digest of what the objects should follow from.
func (r *renders) choose(key client.ObjectKey, inputs string, objects []client.Object, now time.Time) (chosen []client.Object, held bool) {
	current := digestOfObjects(objects)
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.byKey[key]
	switch {
	case !known || last.inputs != inputs:
		r.byKey[key] = rendering{inputs: inputs, digest: current}
	case last.digest == current:
		if last.changes > 0 && !now.Before(last.until) {
			// It has settled.
			r.byKey[key] = rendering{inputs: inputs, digest: current}
		}
	case now.Before(last.until):
		return last.objects, true
	default:
		r.byKey[key] = rendering{
			inputs: inputs, digest: current, objects: objects, changes: last.changes + 1,
			until: now.Add(backoff.Delay(last.changes, holdBase, holdLimit)),
		}
	}
	return objects, false
}

// notice says that manifests are held back; it is empty if they never were.
func (r *renders) notice(key client.ObjectKey) string {
	r.mu.Lock()
	defer r.mu.Unlock()
	last := r.byKey[key]
	if last.changes < 2 {
		return ""
	}
	return fmt.Sprintf("the manifests change with every rendering although nothing else does, so changes are applied at most once in %s",
		backoff.Delay(last.changes-1, holdBase, holdLimit))
}

func (r *renders) forget(key client.ObjectKey) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byKey, key)
	delete(r.probes, key)
}

// digestOfObjects is the same whatever the order of the objects is. It stays in
// memory, so it needs no key.
func digestOfObjects(objects []client.Object) string {
	parts := make([]string, 0, len(objects))
	for _, object := range objects {
		parts = append(parts, digestOfObject(object))
	}
	slices.Sort(parts)
	return digest.Combine(parts...)
}

// digestOfObject is empty for what cannot be read, which the engine refuses.
func digestOfObject(object client.Object) (sum string) {
	defer func() { _ = recover() }() // the object may be of any type that a user wrote
	if value := reflect.ValueOf(object); object == nil || value.Kind() == reflect.Pointer && value.IsNil() {
		return ""
	}
	if untyped, ok := object.(runtime.Unstructured); ok {
		return digest.Hasher{}.Manifest(untyped.UnstructuredContent())
	}
	encoded, err := json.Marshal(object)
	if err != nil {
		return ""
	}
	return digest.Combine(string(encoded))
}

// reasonNonDeterministic is the reason of the event about a generator that renders
// something else every time.
const reasonNonDeterministic = "NonDeterministicRendering"

// hold returns the objects to apply for those that were rendered.
func (h *handler[T]) hold(ctx context.Context, obj T, objects []client.Object) []client.Object {
	inputs, err := manifests.ComponentDigestFromContext(ctx)
	if err != nil {
		return objects
	}
	key := client.ObjectKeyFromObject(obj)
	before := h.renders.notice(key)
	chosen, held := h.renders.choose(key, inputs, objects, h.now())
	if held {
		metrics.RenderHeldBack(h.telemetry.controller)
		logf.FromContext(ctx).V(1).Info("the rendered manifests are held back, because they change without a cause")
	}
	// What two renderings at once have shown is told already.
	if notice := h.renders.notice(key); before == "" && notice != "" && h.renders.finding(key) == "" {
		events.Send(h.recorder, obj, 1, events.Event{
			Type: corev1.EventTypeWarning, Reason: reasonNonDeterministic, Action: string(applying), Note: notice,
		})
	}
	return chosen
}

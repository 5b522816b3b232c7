// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
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
	inputs  string // the digest of what the component says
	answers string // the digest of what the generator read
	digest  string // of the objects
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
// rendered. Another answer of the cluster is a cause of another rendering if the generator
// is known to be deterministic.
func (r *renders) choose(key client.ObjectKey, current rendering, objects []client.Object, now time.Time) (chosen []client.Object, held bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	last, known := r.byKey[key]
	probed := r.probes[key]
	deterministic := probed.inputs == current.inputs && probed.finding == ""
	switch {
	case !known || last.inputs != current.inputs || last.answers != current.answers && deterministic:
		r.byKey[key] = current
	case last.digest == current.digest:
		if last.changes > 0 && !now.Before(last.until) {
			// It has settled.
			r.byKey[key] = current
		}
	case now.Before(last.until):
		return last.objects, true
	default:
		current.objects, current.changes = objects, last.changes+1
		current.until = now.Add(backoff.Delay(last.changes, holdBase, holdLimit))
		r.byKey[key] = current
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

// followed returns the objects whose manifests count with every rendering. One that is
// applied once, such as a generated password, may be rendered in any way.
func (h *handler[T]) followed(objects []client.Object) []client.Object {
	policy := h.settings.name + "/" + v1alpha1.AnnotationReconcilePolicy
	return slices.DeleteFunc(slices.Clone(objects), func(object client.Object) bool {
		return strings.EqualFold(annotationsOf(object)[policy], string(v1alpha1.ReconcilePolicyOnce))
	})
}

// annotationsOf is empty for what cannot be read, which the engine refuses.
func annotationsOf(object client.Object) (annotations map[string]string) {
	defer func() { _ = recover() }() // the object may be of any type that a user wrote
	return object.GetAnnotations()
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

// inputsOf identifies what the component says to its generator. It is empty if that is
// not known.
func inputsOf(ctx context.Context, c Component) string {
	component, err := manifests.ComponentDigestFromContext(ctx)
	if err != nil {
		return ""
	}
	parts := []string{component}
	for _, key := range slices.Sorted(maps.Keys(c.GetLabels())) {
		parts = append(parts, key, c.GetLabels()[key])
	}
	return digest.Combine(parts...)
}

// hold returns the objects to apply for those that were rendered.
func (h *handler[T]) hold(ctx context.Context, obj T, objects []client.Object, read *answers) []client.Object {
	inputs := inputsOf(ctx, obj)
	if inputs == "" {
		return objects
	}
	key := client.ObjectKeyFromObject(obj)
	before := h.renders.notice(key)
	current := rendering{inputs: inputs, answers: read.digest(), digest: digestOfObjects(h.followed(objects))}
	chosen, held := h.renders.choose(key, current, objects, h.now())
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// memory is the memory of this process of components, from one reconcile to the
// next. It saves requests, and repeated events and log lines; a process that starts with an
// empty one does nothing wrong.
type memory struct {
	mu    sync.Mutex
	byKey map[client.ObjectKey]*remembered
	// rendered is the size of the render caches of all components, in bytes.
	rendered int
}

// remembered is the memory of one component. Reconciles of one component do not
// overlap, so the fields need no lock. The exception is cache, which is accessed by methods of memory only.
type remembered struct {
	// cache has the results of the last full reconcile.
	cache renderCache
	// rendering is the last one, to notice when another one differs for no reason.
	rendering rendering.Last
	// pendingCreations says when a creation without a known answer may last have been sent.
	pendingCreations pendingCreations
	// soleWriter: no creation can be under way in this deletion.
	soleWriter bool
}

// unansweredFor is for how long a creation may take effect after its client stopped to wait for the answer. An API server ends a
// request after a minute by default (--request-timeout), and one of a client that is gone earlier.
//
// Limit: the time after the first or a failed reconcile of a component in which a deletion reads the removed
// objects again, with a LeaderLock.
const unansweredFor = 75 * time.Second

// pendingCreations says when a creation for a component without a known answer may last have been sent, by this process or by the one
// that led before.
type pendingCreations struct {
	component apitypes.UID
	// last is zero if there was none.
	last time.Time
	// ended: the component is gone, by a deletion that this process has ended.
	ended bool
}

// mayBeUnderWay reports whether one of them may take effect yet. With a LeaderLock, the leader before sends none later, unless it
// was frozen right before a request: see decision 0007.
func (c pendingCreations) mayBeUnderWay(now time.Time) bool { return now.Sub(c.last) < unansweredFor }

func newMemory() *memory { return &memory{byKey: map[client.ObjectKey]*remembered{}} }

// entryOf returns the memory of a component, which may be empty.
func (m *memory) entryOf(key client.ObjectKey) *remembered {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entryLocked(key)
}

func (m *memory) entryLocked(key client.ObjectKey) *remembered {
	known, ok := m.byKey[key]
	if !ok {
		known = &remembered{}
		m.byKey[key] = known
	}
	return known
}

// deleteEntry drops everything about a component.
func (m *memory) deleteEntry(key client.ObjectKey) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.dropRendered(m.entryLocked(key))
	delete(m.byKey, key)
}

// maxRendered is how much memory the render caches of all components may take together, in
// bytes.
//
// Limit: the compressed manifests of all components in memory; a component without them is rendered again to
// repair drift.
const maxRendered = 128 << 20

// renderCache has the results of a full reconcile, as far as a reconcile needs them that repairs a dependent or looks whether it is
// ready. Without them every reconcile is a full one.
type renderCache struct {
	inputs
	appliedRevision
	// desired are the dependents, as the engine keeps them.
	desired *reconciler.DesiredSet
	size    int // of desired, in bytes of memory
}

// inputs are the instructions of a component, besides its objects.
type inputs struct {
	config     resolvedConfig
	access     target.Access
	allowEmpty bool
	// renderedFrom is the part of the component that the objects follow from.
	renderedFrom renderInputs
	// until is when the next full reconcile is due.
	until time.Time
}

// appliedRevision says which objects are applied.
type appliedRevision struct {
	digest string // of the component
	// pin is the earlier revision that is applied in place of the revision of the spec.
	pin    revision.Pin
	pinned rendering.Pinned
	// meanwhile is set if the component asks for another set. A set that is repaired only is not for the fast path.
	meanwhile meanwhile
	// held describes why the next revision does not start; empty if Ready does not say so.
	held verdict.Held
	// approval is the approval that the next revision waits for; nil if it does not wait.
	approval *v1alpha1.PendingApproval
}

// keepRendered remembers the results of a full reconcile. If there is too much to remember, the
// caches of other components are dropped, whichever they are.
func (m *memory) keepRendered(key client.ObjectKey, p renderCache) {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.entryLocked(key)
	m.dropRendered(known)
	if p.size > maxRendered {
		return
	}
	for _, other := range m.byKey {
		if m.rendered+p.size <= maxRendered {
			break
		}
		m.dropRendered(other)
	}
	known.cache = p
	m.rendered += p.size
}

// takeRendered drops the results for a component, and returns them.
func (m *memory) takeRendered(key client.ObjectKey) renderCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.entryLocked(key)
	cache := known.cache
	m.dropRendered(known)
	return cache
}

func (m *memory) dropRendered(known *remembered) {
	m.rendered -= known.cache.size
	known.cache = renderCache{}
}

// renderedFor returns the results for a component if they are known and still hold. Otherwise
// a full reconcile is needed.
func (m *memory) renderedFor(c Component, now time.Time) (renderCache, bool) {
	known := m.cacheOf(client.ObjectKeyFromObject(c))
	if known.meanwhile == repair || (known.pin.Failed != 0) != (c.GetStatus().Rollback != nil) || !equality.Semantic.DeepEqual(known.approval, c.GetStatus().Approval) {
		return known, false // a rollback, or the wait for an approval, starts or ends; or another client has forged the approval
	}
	return known, known.renderedFrom.equal(renderInputsOf(c)) && known.digest == revision.Of(c).Processing().Component && now.Before(known.until)
}

func (m *memory) cacheOf(key client.ObjectKey) renderCache {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.entryLocked(key).cache
}

// renderInputs is the part of a component that its dependents follow from, as it was read.
type renderInputs struct {
	uid                 apitypes.UID
	generation          int64
	labels, annotations map[string]string
}

func renderInputsOf(c Component) renderInputs {
	annotations := maps.Clone(c.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.HasSuffix(key, "/"+vocabulary.AnnotationPreview) })
	return renderInputs{c.GetUID(), c.GetGeneration(), maps.Clone(c.GetLabels()), annotations}
}

func (s renderInputs) equal(other renderInputs) bool {
	return s.uid == other.uid && s.generation == other.generation &&
		maps.Equal(s.labels, other.labels) && maps.Equal(s.annotations, other.annotations)
}

// meanwhile is the work on the dependent objects while a gate is closed.
type meanwhile string

const (
	// freeze writes nothing.
	freeze meanwhile = "Freeze"
	// repair repairs the objects that were applied last, and removes none.
	repair meanwhile = "Repair"
	// keep goes on applying the current revision, from its set in the history.
	keep meanwhile = "Keep"
)

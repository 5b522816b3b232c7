// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"maps"
	"sync"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

// maxLately is how much memory they may take, of all components together, in bytes.
const maxLately = 128 << 20

// lately keeps what the last full pass over each component has found out, so that a
// pass that repairs a dependent, or looks whether it is ready, need not find it out
// again. It is only memory: without it every pass is a full one.
type lately struct {
	lock  sync.Mutex
	byKey map[client.ObjectKey]prepared
	size  int
}

// prepared is what a component wants, as far as its dependents are concerned.
type prepared struct {
	directives
	id         identity
	digest     string // of the component
	allowEmpty bool
	// wanted are the dependents, as the engine keeps them.
	wanted *reconciler.Wanted
	size   int // of wanted, in bytes of memory

	// root is what this follows from.
	root root
	// until is when the next full pass is due.
	until time.Time
}

func newLately() *lately { return &lately{byKey: map[client.ObjectKey]prepared{}} }

// keep remembers what a component wants. If there is too much to remember, others
// are forgotten for it, whichever they are.
func (l *lately) keep(key client.ObjectKey, p prepared) {
	l.lock.Lock()
	defer l.lock.Unlock()
	l.drop(key)
	if p.size > maxLately {
		return
	}
	for other := range l.byKey {
		if l.size+p.size <= maxLately {
			break
		}
		l.drop(other)
	}
	l.byKey[key] = p
	l.size += p.size
}

// forget returns what was known.
func (l *lately) forget(key client.ObjectKey) prepared {
	l.lock.Lock()
	defer l.lock.Unlock()
	known := l.byKey[key]
	l.drop(key)
	return known
}

func (l *lately) drop(key client.ObjectKey) {
	l.size -= l.byKey[key].size
	delete(l.byKey, key)
}

// of returns what the component wants, if that is known and still so. Otherwise
// a full pass has to find it out.
func (l *lately) of(c Component, now time.Time) (prepared, bool) {
	l.lock.Lock()
	known, ok := l.byKey[client.ObjectKeyFromObject(c)]
	l.lock.Unlock()
	return known, ok && known.root.equal(rootOf(c)) && known.digest == c.GetStatus().processing().component && now.Before(known.until)
}

// dueIn is how long it is until the next full pass is due; ok is false if that is not
// known.
func (l *lately) dueIn(key client.ObjectKey, now time.Time) (due time.Duration, ok bool) {
	l.lock.Lock()
	defer l.lock.Unlock()
	known, ok := l.byKey[key]
	return max(known.until.Sub(now), minInterval), ok && now.Before(known.until)
}

// root is what of a component its dependents follow from, as it was read.
type root struct {
	uid                 apitypes.UID
	generation          int64
	labels, annotations map[string]string
}

func rootOf(c Component) root {
	return root{c.GetUID(), c.GetGeneration(), maps.Clone(c.GetLabels()), maps.Clone(c.GetAnnotations())}
}

func (s root) equal(other root) bool {
	return s.uid == other.uid && s.generation == other.generation &&
		maps.Equal(s.labels, other.labels) && maps.Equal(s.annotations, other.annotations)
}

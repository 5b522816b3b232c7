// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
)

// Options tune a Pool. The zero value is ready to use.
type Options struct {
	// Cluster is for all targets.
	Cluster cluster.Options
	// DialPolicy is for remote clusters. Defaults to cluster.DenyInternal.
	DialPolicy cluster.DialPolicy
	// Slots is how many components may use a remote cluster at the same time.
	// Defaults to 1.
	Slots int
	// Remote is how many components may use remote clusters at the same time, all
	// together. Defaults to no limit.
	Remote int
	// LocalUID identifies the local cluster if the uid of its namespace kube-system
	// must not be read: it must be that uid. A uid that is read counts, too.
	LocalUID types.UID
	// Requeue requeues a component that got ErrBusy or an UnreachableError. It must neither block
	// nor call the pool.
	Requeue func(component types.NamespacedName)
	// Evicted is called with a target that is not in the pool any more. Leases of it
	// remain usable. It is called in the background and only Close waits for it, so
	// it may be slow, send requests and call the pool, except Close.
	Evicted func(cluster.Target)
	// Busy reports whether a target without leases is in use all the same; it is kept
	// as long as there is room. It must not call the pool.
	Busy func(cluster.Target) bool
}

const (
	// unusedFor is how long a target is kept without being used.
	//
	// Limit: the time for which the connection to a target cluster is kept without being used.
	unusedFor = 15 * time.Minute
	// maxEntries is how many targets are kept, if not more are in use.
	maxEntries = 1000
	// sweepInterval is how often Run looks for unused targets.
	sweepInterval = time.Minute
)

// Pool holds the targets by access. It is safe for concurrent use.
type Pool struct {
	local   *rest.Config
	options Options
	limit   int
	make    func(*rest.Config, cluster.Options) (cluster.Target, error)

	alive context.Context
	end   context.CancelFunc
	// background are the probes, and the ends of targets.
	background sync.WaitGroup

	mu      sync.Mutex
	entries map[key]*entry
	remote  int // how many leases there are of remote clusters
	// waiting are the components that were turned away, in their order, each once.
	waiting []waiting
}

// entry is one target. Its fields are guarded by the pool.
type entry struct {
	key     key
	target  cluster.Target
	leases  int
	usedAt  time.Time
	evicted bool
	// health is nil for targets in the local cluster.
	health *health
}

// waiting is a component that waits for a target.
type waiting struct {
	component types.NamespacedName
	entry     *entry
}

// New returns a Pool. The configuration is the configuration of the local cluster.
func New(local *rest.Config, options Options) *Pool {
	options.Slots = cmp.Or(options.Slots, 1)
	if options.DialPolicy == nil {
		options.DialPolicy = cluster.DenyInternal
	}
	if options.Requeue == nil {
		options.Requeue = func(types.NamespacedName) {}
	}
	if options.Evicted == nil {
		options.Evicted = func(cluster.Target) {}
	}
	if options.Busy == nil {
		options.Busy = func(cluster.Target) bool { return false }
	}
	p := &Pool{local: local, options: options, limit: maxEntries, make: cluster.New, entries: map[key]*entry{}}
	p.alive, p.end = context.WithCancel(context.Background())
	return p
}

// Lease is the right to use a target until Release.
type Lease struct {
	Target  cluster.Target
	release func()
	evicted func() bool
}

// Evicted reports whether the target is not in the pool any more, so that no other
// lease of it will be given. It calls the pool.
func (l *Lease) Evicted() bool { return l.evicted() }

// Release gives the right back. It may be called again, and on nil.
func (l *Lease) Release() {
	if l != nil {
		l.release()
	}
}

// Acquire returns a lease of the target of an access for a component, which is requeued
// if it is turned away, unless it has no name. It neither blocks nor sends a request.
//
// The errors are ErrBusy, *UnreachableError, ErrLocal and ErrPerhapsLocal, which are
// for remote clusters, *kubeconfig.Error, and ErrClosed.
func (p *Pool) Acquire(access Access, component types.NamespacedName) (*Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.entry(access)
	if err != nil {
		return nil, err
	}
	e.usedAt = time.Now()
	if e.health != nil {
		if err := p.admit(e, component); err != nil {
			return nil, err
		}
		p.remote++
	}
	e.leases++
	return &Lease{
		Target: e.target, release: sync.OnceFunc(func() { p.endLease(e) }), evicted: func() bool { return p.isEvicted(e) },
	}, nil
}

// admit returns an error if a remote cluster cannot be used now.
func (p *Pool) admit(e *entry, component types.NamespacedName) error {
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiting) bool { return w.component == component && w.entry != e })
	at := slices.IndexFunc(p.waiting, func(w waiting) bool { return w.component == component })
	var err error
	switch {
	case !e.health.verified():
		p.probe(e)
		err = ErrBusy
		if e.health.failure != nil {
			err = &UnreachableError{Err: e.health.failure}
		}
	case e.health.refusal != nil:
		err = e.health.refusal
	case !p.hasSlot(e):
		err = ErrBusy
	}
	switch waits := err != nil && err != e.health.refusal && component.Name != ""; {
	case waits && at < 0:
		p.waiting = append(p.waiting, waiting{component, e})
	case !waits && at >= 0:
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
	if err != nil {
		// The component may have been requeued for a slot that it cannot use now.
		p.wakeNext()
	}
	return err
}

func (p *Pool) hasSlot(e *entry) bool {
	return e.leases < p.options.Slots && (p.options.Remote == 0 || p.remote < p.options.Remote)
}

func (p *Pool) isEvicted(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.evicted
}

// entry finds or makes the entry of an access.
func (p *Pool) entry(access Access) (*entry, error) {
	if p.alive.Err() != nil {
		return nil, ErrClosed
	}
	key := access.key()
	if e, ok := p.entries[key]; ok {
		return e, nil
	}
	config, err := access.config(p.local)
	if err != nil {
		return nil, err
	}
	e := &entry{key: key}
	options := p.options.Cluster
	if access.remote() {
		e.health = &health{invalidate: func() { p.invalidate(e) }}
		e.health.ctx, e.health.cancel = context.WithCancel(p.alive)
		options.DialPolicy, options.ByAddress = p.options.DialPolicy, true
		config.Wrap(e.health.wrap)
	}
	if e.target, err = p.make(config, options); err != nil {
		if e.health != nil {
			e.health.cancel()
		}
		return nil, fmt.Errorf("make a client: %w", err)
	}
	p.makeRoom()
	p.entries[key] = e
	return e, nil
}

// endLease ends a lease, and requeues the first component that there is a slot for now. If
// the cluster is not verified any more, components that wait for it learn from a probe
// whether they can use it.
func (p *Pool) endLease(e *entry) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.leases--
	e.usedAt = time.Now()
	if e.health == nil {
		return
	}
	p.remote--
	if !e.evicted && !e.health.verified() && slices.ContainsFunc(p.waiting, func(w waiting) bool { return w.entry == e }) {
		p.probe(e)
	}
	p.wakeNext()
}

// ForgetComponent drops a component that does not wait any more, because it is gone or
// suspended. If it was requeued for a slot, the next component that waits gets it.
func (p *Pool) ForgetComponent(component types.NamespacedName) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiting) bool { return w.component == component })
	p.wakeNext()
}

// wakeNext requeues the first component that waits and that there is a slot for.
func (p *Pool) wakeNext() {
	at := slices.IndexFunc(p.waiting, func(w waiting) bool { return w.entry.health.verified() && p.hasSlot(w.entry) })
	if at >= 0 {
		p.options.Requeue(p.waiting[at].component)
		p.waiting = slices.Delete(p.waiting, at, at+1)
	}
}

// wakeAll requeues the components that wait for a target.
func (p *Pool) wakeAll(e *entry) {
	p.waiting = slices.DeleteFunc(p.waiting, func(w waiting) bool {
		if w.entry == e {
			p.options.Requeue(w.component)
		}
		return w.entry == e
	})
}

// Run closes unused targets until the context ends, and then all of them. It implements
// manager.Runnable of controller-runtime.
func (p *Pool) Run(ctx context.Context) error {
	defer p.Close()
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			p.sweep()
		}
	}
}

// sweep evicts targets that are unused for a while.
func (p *Pool) sweep() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, e := range p.entries {
		if e.leases == 0 && time.Since(e.usedAt) >= unusedFor && !p.options.Busy(e.target) {
			p.evict(e)
		}
	}
}

// makeRoom evicts targets without leases, the longest unused first, until there is room for one
// more. A target that is busy all the same goes only if there is no other.
func (p *Pool) makeRoom() {
	for len(p.entries) >= p.limit {
		var oldest *entry
		var oldestIsBusy bool
		for _, e := range p.entries {
			if e.leases > 0 {
				continue
			}
			busy := p.options.Busy(e.target)
			if oldest == nil || oldestIsBusy && !busy || oldestIsBusy == busy && e.usedAt.Before(oldest.usedAt) {
				oldest, oldestIsBusy = e, busy
			}
		}
		if oldest == nil {
			return
		}
		p.evict(oldest)
	}
}

// evict removes an entry from the pool. Its leases remain usable. The target ends in the
// background, without the lock: its last requests report to the pool, and no reconcile
// waits for them.
func (p *Pool) evict(e *entry) {
	delete(p.entries, e.key)
	e.evicted = true
	if e.health != nil {
		e.health.cancel()
	}
	p.wakeAll(e)
	p.background.Go(func() {
		e.target.Close()
		p.options.Evicted(e.target)
	})
}

// Close evicts all targets, and returns when nothing runs in the background any more
// and Options.Evicted was called for each. No lease is given any more.
func (p *Pool) Close() {
	p.mu.Lock()
	p.end()
	for _, e := range p.entries {
		p.evict(e)
	}
	p.mu.Unlock()
	p.background.Wait()
}

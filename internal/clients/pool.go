// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package clients

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/pkg/cluster"
)

// Options tune a Pool. The zero value is ready to use.
type Options struct {
	// Cluster is for all targets.
	Cluster cluster.Options
	// DialPolicy is for the targets of kubeconfigs. Defaults to cluster.DenyInternal.
	DialPolicy cluster.DialPolicy
	// Slots is how many may use the target of a kubeconfig at the same time.
	// Defaults to 1.
	Slots int
	// Remote is how many may use targets of kubeconfigs at the same time, all
	// together. Defaults to no limit.
	Remote int
	// LocalUID identifies the local cluster for those who may not read the uid of
	// its namespace kube-system: it must be that one. What is read counts, too.
	LocalUID types.UID
	// Wake is called with a waiter for whom it is worth to come again. It must
	// not block.
	Wake func(waiter types.NamespacedName)
	// Evicted is called with a target that the pool has let go of: nobody will get
	// it any more, but whoever uses it may go on. It is called in the background and
	// nobody waits for it but Close, so it may take its time, send requests and call
	// the pool, except Close.
	Evicted func(cluster.Target)
	// Busy tells of a target that nobody has entered for a while whether it is in use
	// all the same, so that it is kept as long as there is room. It must not call the pool.
	Busy func(cluster.Target) bool
}

const (
	// unusedFor is how long a target is kept without being used.
	unusedFor = 15 * time.Minute
	// maxEntries is how many targets are kept, if not more are in use.
	maxEntries = 1000
	// sweepInterval is how often Run looks for what is unused.
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
	remote  int     // how many use targets of kubeconfigs
	starved waiters // of them, those whom only Options.Remote keeps out
}

// entry is one target. Its fields are guarded by the pool.
type entry struct {
	key    key
	target cluster.Target
	users  int
	usedAt time.Time
	gone   bool // nobody gets it any more
	// trust is nil for targets in the local cluster.
	trust *trust
}

// New returns a Pool. The configuration is that of the local cluster.
func New(local *rest.Config, options Options) *Pool {
	options.Slots = cmp.Or(options.Slots, 1)
	if options.DialPolicy == nil {
		options.DialPolicy = cluster.DenyInternal
	}
	if options.Wake == nil {
		options.Wake = func(types.NamespacedName) {}
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

// Evicted tells whether the pool has let go of the target meanwhile, so that nobody
// else will get it. It calls the pool.
func (l *Lease) Evicted() bool { return l.evicted() }

// Release gives the right back. It may be called again, and on nil.
func (l *Lease) Release() {
	if l != nil {
		l.release()
	}
}

// Enter returns the target of an access, for a waiter that is remembered if it is
// turned away. It neither blocks nor sends anything.
//
// The errors are ErrBusy, *UnreachableError, ErrLocal and ErrPerhapsLocal, which are
// for targets of kubeconfigs, *kubeconfig.Error, and ErrClosed.
func (p *Pool) Enter(access Access, waiter types.NamespacedName) (*Lease, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e, err := p.entry(access)
	if err != nil {
		return nil, err
	}
	e.usedAt = time.Now()
	if e.trust != nil {
		if err := p.admit(e, waiter); err != nil {
			return nil, err
		}
	}
	e.users++
	return &Lease{
		Target: e.target, release: sync.OnceFunc(func() { p.leave(e) }), evicted: func() bool { return p.isGone(e) },
	}, nil
}

func (p *Pool) isGone(e *entry) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return e.gone
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
		e.trust = p.newTrust(e)
		options.DialPolicy, options.ByAddress = p.options.DialPolicy, true
		config.Wrap(e.trust.wrap)
	}
	if e.target, err = p.make(config, options); err != nil {
		if e.trust != nil {
			e.trust.end()
		}
		return nil, fmt.Errorf("make a client: %w", err)
	}
	p.makeRoom()
	p.entries[key] = e
	return e, nil
}

// leave ends the use of a target.
func (p *Pool) leave(e *entry) {
	p.mu.Lock()
	e.users--
	e.usedAt = time.Now()
	var woken []types.NamespacedName
	if e.trust != nil {
		p.remote--
		woken = append(p.starved.take(1), e.trust.waiters.take(1)...)
	}
	p.mu.Unlock()
	p.wake(woken)
}

func (p *Pool) wake(waiters []types.NamespacedName) {
	for _, waiter := range waiters {
		p.options.Wake(waiter)
	}
}

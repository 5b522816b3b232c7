// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
	coordinationv1 "k8s.io/client-go/kubernetes/typed/coordination/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// LeaderLock is a lock for the leader election of a manager, which knows how old
// its lease is. A manager finds out that it lost its lease only when it tries to
// renew it; a process that was paused meanwhile goes on as if nothing had happened,
// beside the new leader. With the option LeaderLock a reconciler starts no reconcile and no
// hook, creates nothing, and writes no status and sends no event, once the lease is older
// than the renew deadline. A change or deletion of a dependent object that was under
// way demands the state that the plan has read, so the server refuses it after a change of the new leader.
//
//	lock, err := component.NewLeaderLock(config, "shop-system", "shop.example.com")
//	...
//	manager, err := ctrl.NewManager(config, ctrl.Options{
//		LeaderElection: true, LeaderElectionResourceLockInterface: lock,
//	})
type LeaderLock struct {
	resourcelock.Interface

	now func() time.Time // with a monotonic reading

	mu       sync.Mutex
	renewed  time.Time // zero: not held
	deadline time.Duration
}

// NewLeaderLock returns a lock that is kept in a Lease of the given namespace and
// name. It sends no request.
func NewLeaderLock(config *rest.Config, namespace, name string) (*LeaderLock, error) {
	if namespace == "" || name == "" {
		return nil, fmt.Errorf("the Lease %q in the namespace %q: a leader lock needs a namespace and a name", name, namespace)
	}
	config = rest.AddUserAgent(config, "leader-election")
	// One answer that does not come must not cost the leadership.
	config.Timeout = 5 * time.Second
	client, err := coordinationv1.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("make a client for leader election: %w", err)
	}
	lock, err := resourcelock.New(resourcelock.LeasesResourceLock, namespace, name, nil, client,
		resourcelock.ResourceLockConfig{Identity: string(uuid.NewUUID())})
	if err != nil {
		return nil, fmt.Errorf("leader lock: %w", err)
	}
	return &LeaderLock{Interface: lock, now: time.Now}, nil
}

// Create implements resourcelock.Interface.
func (l *LeaderLock) Create(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(record, func() error { return l.Interface.Create(ctx, record) })
}

// Update implements resourcelock.Interface.
func (l *LeaderLock) Update(ctx context.Context, record resourcelock.LeaderElectionRecord) error {
	return l.renew(record, func() error { return l.Interface.Update(ctx, record) })
}

// Get implements resourcelock.Interface.
func (l *LeaderLock) Get(ctx context.Context) (*resourcelock.LeaderElectionRecord, []byte, error) {
	record, raw, err := l.Interface.Get(ctx)
	if err == nil && record.HolderIdentity != l.Identity() {
		l.setRenewed(time.Time{}, 0)
	}
	return record, raw, err
}

// renew counts the age of the lease from before the request: others count from
// when they see it, which is later.
func (l *LeaderLock) renew(record resourcelock.LeaderElectionRecord, send func() error) error {
	sent := l.now()
	if record.HolderIdentity != l.Identity() {
		// Given up. As soon as the server knows it, another process may lead.
		l.setRenewed(time.Time{}, 0)
		return send()
	}
	if err := send(); err != nil {
		return err
	}
	// The default renew deadline is ten of fifteen seconds; the rest of the time is
	// for requests under way.
	l.setRenewed(sent, time.Duration(record.LeaseDurationSeconds)*time.Second*2/3)
	return nil
}

func (l *LeaderLock) setRenewed(renewed time.Time, deadline time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.renewed, l.deadline = renewed, deadline
}

// leading is Check for a reconcile: in a process that may have been deposed it ends without
// a verdict, as one that met a newer version of its component.
func (l *LeaderLock) leading() error { return l.leadingFor(0) }

// leadingFor reports whether this process leads for some time yet.
func (l *LeaderLock) leadingFor(ahead time.Duration) error {
	if l == nil {
		return nil
	}
	if err := l.check(ahead); err != nil {
		return superseded("%w", err)
	}
	return nil
}

// superseded ends a reconcile that this process may not make any more, or that is about
// something else by now. There is no verdict then, and nothing is written.
func superseded(format string, args ...any) error {
	return &result.RequeueError{After: creating, Err: fmt.Errorf("%w: %w", patch.ErrConflict, fmt.Errorf(format, args...))}
}

// creating is how long objects may be created after a check.
const creating = 5 * time.Second

// Check returns an error if the lease is not ours, or may not be ours any more:
// it was not renewed for two thirds of its duration. It sends no request.
func (l *LeaderLock) Check() error { return l.check(0) }

// check reports whether the lease can be relied on for some time yet. A lease that is
// never held for so long is relied on in its first third.
func (l *LeaderLock) check(ahead time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.renewed.IsZero() {
		return fmt.Errorf("%s is not held by this process", l.Describe())
	}
	if age := l.now().Sub(l.renewed); age >= max(l.deadline-ahead, l.deadline/2) {
		return fmt.Errorf("%s was not renewed for %s: another process may lead by now", l.Describe(), age.Round(time.Millisecond))
	}
	return nil
}

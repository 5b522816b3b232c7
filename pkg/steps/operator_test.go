// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/steps"
	"github.com/corbel-run/corbel/test/wire"
)

const finalizer = "steps.test.corbel.run/bucket"

// cloud is the system outside. Like many, it makes something once for each idempotency key.
type cloud struct {
	mu      sync.Mutex
	byKey   map[string]string
	buckets map[string]bool // true if configured
	calls   map[string]int
}

func newCloud() *cloud {
	return &cloud{byKey: map[string]string{}, buckets: map[string]bool{}, calls: map[string]int{}}
}

func (c *cloud) enter(call string) (unlock func()) {
	c.mu.Lock()
	c.calls[call]++
	return c.mu.Unlock
}

func (c *cloud) create(key string) string {
	defer c.enter("create")()
	name, known := c.byKey[key]
	if !known {
		name = fmt.Sprintf("b-%d", len(c.byKey)+1)
		c.byKey[key], c.buckets[name] = name, false
	}
	return name
}

func (c *cloud) configure(name string) {
	defer c.enter("configure")()
	if _, ok := c.buckets[name]; ok {
		c.buckets[name] = true
	}
}

func (c *cloud) remove(name string) {
	defer c.enter("remove")()
	delete(c.buckets, name)
}

// operator looks after one bucket: it is created outside, then configured; and removed
// before the object goes.
type operator struct {
	client client.Client
	cloud  *cloud
	gate   *wire.Gate
	lock   []steps.LockOption
	// commits makes the locks write with the commit of a patch helper.
	commits bool
}

// operator returns an operator in a process of its own.
func (s *story) operator(g *wire.Gate, options ...steps.LockOption) *operator {
	return &operator{
		client: wire.Intercept(s.server, g.Do), cloud: s.cloud, gate: g, commits: s.commits,
		lock: append(options, steps.WithProcess(steps.NewProcess())),
	}
}

// reconcile is one reconcile. It reports whether the bucket is at rest.
func (o *operator) reconcile(ctx context.Context) (rest bool, err error) {
	b := &Bucket{}
	if err := o.client.Get(ctx, key, b); err != nil {
		return client.IgnoreNotFound(err) == nil, client.IgnoreNotFound(err)
	}
	options := o.lock
	if o.commits {
		helper, err := patch.NewHelper(b, o.client)
		if err != nil {
			return false, err
		}
		options = append(slices.Clone(options), steps.WithCommit(func(ctx context.Context) error { return helper.Commit(ctx, b) }))
	}
	lock := steps.NewLock(b, o.client, step, options...)
	switch {
	case b.DeletionTimestamp != nil && b.Status.Steps.TypeHasStatus(step, steps.ConditionTerminated):
		controllerutil.RemoveFinalizer(b, finalizer)
		return false, o.client.Update(ctx, b)
	case b.DeletionTimestamp == nil && controllerutil.AddFinalizer(b, finalizer):
		return false, o.client.Update(ctx, b)
	case b.DeletionTimestamp == nil && lock.Condition().Status == steps.ConditionCompleted:
		return true, nil
	}
	return false, lock.Execute(ctx, func(c steps.Condition) (steps.Condition, error) { return o.step(lock, b, c) })
}

func (o *operator) step(lock *steps.Lock, b *Bucket, c steps.Condition) (steps.Condition, error) {
	var err error
	switch {
	case b.DeletionTimestamp != nil:
		err = o.gate.Do("remove", func() error { o.cloud.remove(b.Status.BucketName); return nil })
		c.Status, c.Reason = steps.ConditionTerminated, "Bucket removed"
	case c.Status == steps.ConditionInitialized:
		err = o.gate.Do("create", func() error { b.Status.BucketName = o.cloud.create(lock.IdempotencyKey(c)); return nil })
		c.Status, c.Reason = steps.ConditionCreated, "Bucket created"
	case c.Status == steps.ConditionCreated:
		err = o.gate.Do("configure", func() error { o.cloud.configure(b.Status.BucketName); return nil })
		c.Status, c.Reason = steps.ConditionCompleted, "Bucket configured"
	case b.Status.BucketName != "":
		// Another client changed the step. What is known must do.
		c.Status, c.Reason = steps.ConditionCreated, "found"
	default:
		c.Status, c.Reason = steps.ConditionInitialized, "found nothing"
	}
	return c, err
}

// drive runs reconciles until the bucket is at rest, or the operator has crashed. A caller that has to
// wait for a lock gets the time to wait, and the lock must be free then.
func (o *operator) drive(ctx context.Context, longest time.Duration) error {
	var problems []error
	var waitedFor time.Time
	for ctx.Err() == nil {
		rest, err := o.reconcile(ctx)
		if o.gate.HasCrashed() || rest {
			return errors.Join(problems...)
		}
		pause := time.Millisecond
		if held, ok := errors.AsType[*steps.LockHeldError](err); ok {
			if held.RetryAfter > longest {
				return fmt.Errorf("the lock is held for longer than its lease: %w", err)
			}
			if held.Since.Equal(waitedFor) {
				problems = append(problems, fmt.Errorf("the lock is held still: %w", err))
			}
			waitedFor, pause = held.Since, held.RetryAfter
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
	}
	return errors.Join(append(problems, fmt.Errorf("no rest: %w", ctx.Err()))...)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
)

// ConditionalResource is an object with steps. The method Conditions returns a pointer
// to a field of its status, so it must have a pointer as receiver:
//
//	func (b *Bucket) Conditions() *steps.Conditions { return &b.Status.Steps }
type ConditionalResource interface {
	// Conditions returns the field of the status.
	Conditions() *Conditions

	client.Object
}

// Task is the work on a step. It gets the condition as it was before the lock, and
// returns it with its final status; or an error, which see at [Lock.Execute].
type Task func(Condition) (Condition, error)

// Lock runs tasks that must not run twice at the same time, nor on an old state of the
// object. It is not safe for concurrent use.
type Lock struct {
	obj           ConditionalResource
	client        client.Client
	reader        client.Reader
	conditionType ConditionType
	condition     Condition
	self          identity
	process       *process
	lease         time.Duration
	transient     func(error) bool
	commit        func(context.Context) error
	patience      time.Duration // of a release
}

// NewLock returns a Lock for one step of the object, which must have been read from the
// server. Nothing is written before Execute.
func NewLock(obj ConditionalResource, c client.Client, ct ConditionType, options ...LockOption) *Lock {
	l := &Lock{obj: obj, client: c, reader: c, conditionType: ct, lease: DefaultLease, process: thisProcess, patience: releaseTimeout}
	for _, option := range options {
		option(l)
	}
	if l.self.holder == "" {
		l.self.holder = l.process.host
	}
	if l.reader == nil {
		l.reader = c
	}
	l.self.process = l.process.nonce
	l.condition = Condition{Type: ct, Status: ConditionInitialized}
	if obj != nil && obj.Conditions() != nil {
		l.condition = obj.Conditions().FindOrInitializeFor(ct)
	}
	return l
}

// Condition returns what NewLock found as the condition of the step, as a copy. Execute
// does not change it. If the object had no such condition, its status is ConditionInitialized.
func (l *Lock) Condition() Condition { return *l.condition.DeepCopy() }

// Execute locks the step, runs the task and releases the lock.
//
// The lock is a write of the object's status with its resourceVersion as precondition.
// If the object is not the newest, it fails with the API server's conflict (which is
// also patch.ErrConflict), and the task does not run. The task sees the condition
// as it was before, also after a takeover.
//
// Afterwards what the task changed in the object's status is written, together with
// the condition it returned. Others may have changed the object meanwhile: both
// changes stay. The task need not write the object, but may.
//
// If the task returns an error, or panics, the condition becomes Error with the error as
// reason, unless the error passes by itself, see WithTransient. If it leaves the
// condition Locked, or returns that of another type, the condition becomes Error and the
// error is LockNotReleasedErr. The errors of API server and task are joined, the former first.
//
// Other errors: *LockHeldError, ErrLockLost, NotInitializedConditionsErr,
// *patch.PrunedError and *patch.NoStatusSubresourceError.
func (l *Lock) Execute(ctx context.Context, task Task) (err error) {
	if task == nil {
		return fmt.Errorf("lock condition %s: there is no task", l.conditionType)
	}
	return l.ExecuteContext(ctx, func(_ context.Context, condition Condition) (Condition, error) { return task(condition) })
}

// ExecuteContext is Execute for a task that takes a context, which ends a little before
// the lease.
func (l *Lock) ExecuteContext(ctx context.Context, task func(context.Context, Condition) (Condition, error)) error {
	if err := l.check(); err != nil {
		return fmt.Errorf("lock condition %s: %w", l.conditionType, err)
	}
	if task == nil {
		return fmt.Errorf("lock condition %s: there is no task", l.conditionType)
	}
	began := time.Now()
	h, err := l.acquire(ctx, began)
	if err != nil {
		return fmt.Errorf("lock condition %s of %s: %w", l.conditionType, l.name(), err)
	}
	defer l.process.end(h.token)

	limited, cancel := context.WithDeadline(ctx, began.Add(l.lease-margin(l.lease)))
	defer cancel()
	returned, taskErr := run(limited, task, h.before)
	final, taskErr := settle(ending{
		before: h.before, returned: returned, err: taskErr, passes: l.passes(limited, taskErr), key: h.key, now: time.Now(),
	})
	if err := l.release(ctx, h, final); err != nil {
		err = fmt.Errorf("release condition %s of %s: %w", l.conditionType, l.name(), err)
		return errors.Join(err, taskErr)
	}
	return taskErr
}

// IdempotencyKey returns a text to give to an external system along with the request to make
// something, so that it makes it once: it is the same for every attempt at this step of
// this object, however the attempts before ended, until one of them succeeds, or somebody
// gives the step another status than Error. Call it with the condition that the task got.
func (l *Lock) IdempotencyKey(condition Condition) string {
	return idempotencyKey(l.obj.GetUID(), condition)
}

func (l *Lock) check() error {
	if l.obj == nil || l.client == nil {
		return errors.New("a lock needs an object and a client")
	}
	if err := validateType(l.conditionType); err != nil {
		return err
	}
	first, second := l.obj.Conditions(), l.obj.Conditions()
	switch {
	case first == nil:
		return fmt.Errorf("%w: %T.Conditions returned nil", NotInitializedConditionsErr, l.obj)
	case first != second:
		return fmt.Errorf("%w: %T.Conditions returns those of a copy; give it a pointer as receiver", NotInitializedConditionsErr, l.obj)
	case l.obj.GetResourceVersion() == "":
		return errors.New("the object has no resourceVersion; read it from the server first")
	}
	return nil
}

// passes tells whether a task that ended with the error may simply be run again.
func (l *Lock) passes(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, patch.ErrConflict) {
		return true
	}
	if later, ok := errors.AsType[passing](err); ok && later.PassesByItself() {
		return true
	}
	interrupted := ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	return interrupted || l.transient != nil && l.transient(err) || result.Compute(result.Empty, err, nil).Outcome == result.Waited
}

// passing is what an error may say about itself, such as the LaterError of pkg/lifecycle.
type passing interface {
	error
	PassesByItself() bool
}

// run turns a panic of the task into an error.
func run(ctx context.Context, task func(context.Context, Condition) (Condition, error), before Condition) (returned Condition, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the task panicked: %v", r)
			logf.FromContext(ctx).Error(err, "a task panicked", "condition", before.Type, "stack", string(debug.Stack()))
		}
	}()
	return task(ctx, *before.DeepCopy())
}

func newToken() string { return rand.Text() }

// name is the object for messages: kind, namespace and name.
func (l *Lock) name() string {
	kind := fmt.Sprintf("%T", l.obj)
	if gvk, err := l.client.GroupVersionKindFor(l.obj); err == nil {
		kind = gvk.Kind
	}
	if l.obj.GetNamespace() == "" {
		return kind + " " + l.obj.GetName()
	}
	return fmt.Sprintf("%s %s", kind, client.ObjectKeyFromObject(l.obj))
}

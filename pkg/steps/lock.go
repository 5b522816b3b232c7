// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
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
	obj            ConditionalResource
	client         client.Client
	reader         client.Reader
	conditionType  ConditionType
	condition      Condition
	self           identity
	process        *process
	lease          time.Duration
	transient      func(error) bool
	commit         func(context.Context) error
	releaseTimeout time.Duration
}

// NewLock returns a Lock for one step of the object, which must have been read from the
// server. Nothing is written before Execute.
func NewLock(obj ConditionalResource, c client.Client, ct ConditionType, options ...LockOption) *Lock {
	l := &Lock{obj: obj, client: c, reader: c, conditionType: ct, lease: defaultLease, process: thisProcess, releaseTimeout: releaseTimeout}
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

// Condition returns a copy of the condition that NewLock found. Execute does not change it. If the
// object had no such condition, its status is ConditionInitialized.
func (l *Lock) Condition() Condition { return *l.condition.DeepCopy() }

// Execute locks the step, runs the task and releases the lock.
//
// The lock is a write of the object's status with its resourceVersion as precondition.
// If the object is not the newest, it fails with the API server's conflict (which is
// also patch.ErrConflict), and the task does not run. The task sees the condition
// as it was before, also after a takeover.
//
// Afterwards the task's changes of the object's status are written, together with the condition it
// returned. Another client may have changed the object meanwhile: both changes stay. The task need
// not write the object, but may.
//
// If the task returns an error, or panics, the condition becomes Error with the error as reason,
// unless the error is transient, see WithTransient. If it leaves the condition Locked, or returns a
// condition of another type, the condition becomes Error and the error is LockNotReleasedErr. The
// errors of API server and task are joined, the former first.
//
// Other errors: *LockHeldError, ErrLockLost, NotInitializedConditionsErr,
// *patch.PrunedError and *patch.NoStatusSubresourceError.
func (l *Lock) Execute(ctx context.Context, task Task) (err error) {
	if task == nil {
		return fmt.Errorf("lock condition %s: there is no task", l.conditionType)
	}
	return l.ExecuteContext(ctx, func(_ context.Context, condition Condition) (Condition, error) { return task(condition) })
}

// ExecuteContext is Execute for a task with a context, which ends a little before
// the lease.
func (l *Lock) ExecuteContext(ctx context.Context, task func(context.Context, Condition) (Condition, error)) error {
	if err := l.check(); err != nil {
		return fmt.Errorf("lock condition %s: %w", l.conditionType, err)
	}
	if task == nil {
		return fmt.Errorf("lock condition %s: there is no task", l.conditionType)
	}
	start := time.Now()
	h, err := l.acquire(ctx, start)
	if err != nil {
		return fmt.Errorf("lock condition %s of %s: %w", l.conditionType, l.name(), err)
	}
	defer l.process.endTask(h.token)

	limited, cancel := context.WithDeadline(ctx, start.Add(l.lease-margin(l.lease)))
	defer cancel()
	returned, taskErr := run(limited, task, h.before)
	final, taskErr := finalCondition(taskEnd{
		before: h.before, returned: returned, err: taskErr, transient: l.isTransient(limited, taskErr), key: h.key, now: time.Now(),
	})
	if err := l.release(ctx, h, final); err != nil {
		err = fmt.Errorf("release condition %s of %s: %w", l.conditionType, l.name(), err)
		return errors.Join(err, taskErr)
	}
	return taskErr
}

// IdempotencyKey returns a text to give to an external system along with the request to make
// something, so that it makes it once: it is the same for every attempt at this step of
// this object, however the attempts before ended, until one of them succeeds, or a client
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

// isTransient reports whether a task that ended with the error may simply be run again.
func (l *Lock) isTransient(ctx context.Context, err error) bool {
	if err == nil {
		return false
	}
	if errors.Is(err, patch.ErrConflict) {
		return true
	}
	if later, ok := errors.AsType[transientError](err); ok && later.Transient() {
		return true
	}
	interrupted := ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded))
	return interrupted || l.transient != nil && l.transient(err) || result.Compute(result.Empty, err, nil).Outcome == result.Waited
}

// transientError is an error that knows whether it is transient, such as the RequeueError of
// pkg/result.
type transientError interface {
	error
	Transient() bool
}

// run calls the task. A panic becomes an error.
func run(ctx context.Context, task func(context.Context, Condition) (Condition, error), before Condition) (returned Condition, err error) {
	err = guard.CallNamed("the task", func() (err error) {
		returned, err = task(ctx, *before.DeepCopy())
		return err
	})
	guard.Log(logf.FromContext(ctx), err, "a task panicked", "condition", before.Type)
	return returned, err
}

// name is the object for messages: kind, namespace and name.
func (l *Lock) name() string {
	kind := fmt.Sprintf("%T", l.obj)
	if gvk, err := l.client.GroupVersionKindFor(l.obj); err == nil {
		kind = gvk.Kind
	}
	return report.Key{Kind: kind, Namespace: l.obj.GetNamespace(), Name: l.obj.GetName()}.String()
}

// idempotencyKey is the key of an attempt from the condition: the key of the attempt before if it
// ended in Error, because its outcome is unknown.
func idempotencyKey(uid apitypes.UID, condition Condition) string {
	if condition.Status == ConditionError && condition.AttemptKey != "" {
		return condition.AttemptKey
	}
	text := fmt.Sprintf("%s\n%s\n%s\n%d", uid, condition.Type, condition.Status, condition.LastTransitionTime.Unix())
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:16])
}

// defaultLease is how long a lock is its holder's, unless WithLease sets another time.
const defaultLease = 5 * time.Minute

// minLease keeps the margin at the end of a lease from being nothing.
const minLease = 100 * time.Millisecond

// LockOption configures a Lock.
type LockOption func(*Lock)

// WithLease sets the duration of the lock. A task that may take longer needs a
// longer one: afterwards any other process may take the lock over. The context of ExecuteContext
// ends a little earlier. Default is 5 minutes, the floor 100 ms.
func WithLease(lease time.Duration) LockOption {
	return func(l *Lock) { l.lease = max(lease, minLease) }
}

// WithHolder names the holder of the lock. No two processes that live at the same time may
// have the same, so it should be the uid of the pod: then a process that starts again
// takes over the locks of its predecessor at once. Default is the name of the host,
// which does not count as unique.
func WithHolder(id string) LockOption {
	return func(l *Lock) { l.self.holder, l.self.unique = id, id != "" }
}

// WithReader sets the reader for the look at the server after a conflict. It must not
// be a cache. Default is the client, which reads unstructured objects past its cache
// unless it is configured otherwise; if it is, pass the manager's GetAPIReader.
func WithReader(reader client.Reader) LockOption {
	return func(l *Lock) { l.reader = reader }
}

// WithCommit makes the Lock write with the function, which makes the object in memory
// durable or fails: the Commit of pkg/lifecycle, or patch.Helper's. Then there is one
// writer of the object in a reconcile, and the write at its end meets no conflict. If the release
// fails that way, because another client changed the object, the Lock writes by itself. Default is
// to write by itself.
func WithCommit(commit func(ctx context.Context) error) LockOption {
	return func(l *Lock) { l.commit = commit }
}

// WithTransient decides which errors of a task are transient. After these the condition has its
// former status again, with the error as reason, and not Error. A RetriableError, the Waiting and
// the RequeueError of pkg/result, patch.ErrConflict and the end of the context always count as
// such.
func WithTransient(transient func(error) bool) LockOption {
	return func(l *Lock) { l.transient = transient }
}

// LockNotReleasedErr means that the task did not give the condition a final status.
// It is found in a LockHeldError, too.
//
//lint:ignore ST1012 the documented API has this name
var LockNotReleasedErr = errors.New("Condition's lock was not released")

// NotInitializedConditionsErr means that there are no conditions to work on: a nil pointer, or a
// method Conditions with a value receiver, which returns the conditions of a copy.
//
//lint:ignore ST1012 the documented API has this name
var NotInitializedConditionsErr = errors.New("Conditions is not initialized")

// ErrLockLost means that the lock has another holder when the task ends: the lease ran out and
// another process took over, or another client changed the condition. Nothing was written; the
// result of the task is not on record.
var ErrLockLost = errors.New("the lock on the condition was lost while the task ran")

// LockHeldError means that the task did not run because the lock is held.
// For pkg/result it is a wait of RetryAfter. It is LockNotReleasedErr for errors.Is.
type LockHeldError struct {
	// Type is the condition.
	Type ConditionType
	// Holder names the holder of the lock; empty if there is no record of it.
	Holder string
	// Since is when the lease started.
	Since time.Time
	// RetryAfter is when it ends at the latest.
	RetryAfter time.Duration
}

// Error names the holder of the lock, and how long it is held at most.
func (e *LockHeldError) Error() string {
	holder := e.Holder
	if holder == "" {
		holder = "an unknown holder"
	}
	return fmt.Sprintf("condition %s is locked by %s since %s; it will be free in %s at the latest",
		e.Type, holder, e.Since.UTC().Format(time.RFC3339), e.RetryAfter.Round(time.Second))
}

// Unwrap makes the error a RetriableError, and LockNotReleasedErr.
func (e *LockHeldError) Unwrap() error {
	return types.NewRetriableError(LockNotReleasedErr, &e.RetryAfter)
}

// process is one process that holds locks.
type process struct {
	host  string
	nonce string

	mu      sync.Mutex
	running map[string]bool // by token
}

// thisProcess is the current process.
var thisProcess = newProcess()

func newProcess() *process {
	host, err := os.Hostname()
	if err != nil || host == "" {
		host = "unknown"
	}
	return &process{host: host, nonce: rand.Text(), running: map[string]bool{}}
}

func (p *process) startTask(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running[token] = true
}

func (p *process) endTask(token string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.running, token)
}

func (p *process) isRunning(lock *LockInfo) bool {
	if lock == nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.running[lock.Token]
}

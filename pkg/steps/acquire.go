// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/patch"
)

// heldLock is a lock that was acquired.
type heldLock struct {
	token  string
	key    string // the idempotency key
	before Condition
	// base is the object as the server had it after the acquisition, path where its conditions are.
	base       *unstructured.Unstructured
	path       []string
	conditions Conditions // of base
}

// acquire writes that the step is locked, with the resourceVersion of the object as
// precondition. If it fails, the object in memory is as it was.
func (l *Lock) acquire(ctx context.Context, now time.Time) (*heldLock, error) {
	list := l.obj.Conditions()
	stored := list.FindType(l.conditionType)
	a := admit(request{
		conditionType: l.conditionType, stored: stored, self: l.self, token: rand.Text(),
		running: stored != nil && l.process.isRunning(stored.Lock), lease: l.lease, now: now, created: l.obj.GetCreationTimestamp(), uid: l.obj.GetUID(),
	})
	if a.decision == wait {
		return nil, a.held
	}
	h := &heldLock{before: a.before, key: idempotencyKey(l.obj.GetUID(), a.before)}
	if a.locked.Lock != nil {
		h.token = a.locked.Lock.Token
	}
	before := list.DeepCopy()
	if a.decision != correct {
		// Recorded before it is on the server, where another worker of this process may read it.
		l.process.startTask(h.token)
	}
	list.set(a.locked)
	err := l.writeLock(ctx, h, a.locked)
	if err == nil && a.decision != correct {
		// A copy: a task that writes the object decodes the answer into the same array.
		h.conditions = list.DeepCopy()
		return h, nil
	}
	*list = before
	if a.decision == correct {
		return nil, errors.Join(err, a.held)
	}
	l.process.endTask(h.token)
	return nil, err
}

// writeLock writes the status in memory, and compares the answer with the request: a lock that the
// server has not recorded locks nothing. It is a merge patch, so fields that the Go type does not
// know stay.
func (l *Lock) writeLock(ctx context.Context, h *heldLock, locked Condition) error {
	sent, err := l.content()
	if err != nil {
		return err
	}
	if h.path, err = pathOf(sent, locked); err != nil {
		return fmt.Errorf("%T: %w", l.obj, err)
	}
	if l.commit != nil {
		if err := l.commit(ctx); err != nil {
			return err
		}
		h.base, err = l.content()
		return err
	}
	expected, _ := conditionAt(sent, h.path, l.conditionType)
	status, _ := sent.Object["status"].(map[string]any)
	answer, err := l.patchStatus(ctx, l.obj.GetResourceVersion(), status)
	switch {
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", patch.ErrConflict, err)
	case apierrors.IsNotFound(err):
		return l.explainNotFound(ctx, err)
	case err != nil:
		return err
	}
	l.obj.SetResourceVersion(answer.GetResourceVersion())
	kept, _ := conditionAt(answer, h.path, l.conditionType)
	if !reflect.DeepEqual(expected, kept) {
		field := "status." + strings.Join(h.path, ".")
		if kept != nil {
			field += "[].lock"
		}
		pruned := &patch.PrunedError{Object: l.name(), Fields: []string{field}}
		return errors.Join(pruned, l.removeLock(ctx, answer, h))
	}
	sent.SetResourceVersion(answer.GetResourceVersion())
	h.base = sent
	if known, err := l.knownContent(answer); err == nil {
		h.base = known
	}
	return nil
}

// patchStatus sends a merge patch with a precondition, and returns the answer.
func (l *Lock) patchStatus(ctx context.Context, resourceVersion string, status map[string]any) (*unstructured.Unstructured, error) {
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": resourceVersion}, "status": status})
	if err != nil {
		return nil, fmt.Errorf("encode the status of %T: %w", l.obj, err)
	}
	answer, err := l.newObject()
	if err != nil {
		return nil, err
	}
	return answer, l.client.Status().Patch(ctx, answer, client.RawPatch(types.MergePatchType, body))
}

// removeLock removes the rest of a lock that could not be recorded.
func (l *Lock) removeLock(ctx context.Context, answer *unstructured.Unstructured, h *heldLock) error {
	list, _, _ := unstructured.NestedSlice(answer.Object, statusPath(h.path)...)
	var rest []any
	for _, element := range list {
		if condition, ok := element.(map[string]any); !ok || condition["type"] != string(l.conditionType) {
			rest = append(rest, element)
		}
	}
	if len(rest) == len(list) {
		return nil
	}
	if h.before.Status != ConditionInitialized {
		element, err := convert[map[string]any](h.before)
		if err != nil {
			return err
		}
		rest = append(rest, element)
	}
	former := map[string]any{}
	if err := unstructured.SetNestedSlice(former, rest, h.path...); err != nil {
		return err
	}
	answer, err := l.patchStatus(context.WithoutCancel(ctx), answer.GetResourceVersion(), former)
	if err != nil {
		return fmt.Errorf("undo the acquisition of the lock: %w", err)
	}
	l.obj.SetResourceVersion(answer.GetResourceVersion())
	return nil
}

// explainNotFound distinguishes an object that is gone from a status subresource that is not served.
func (l *Lock) explainNotFound(ctx context.Context, notFound error) error {
	if _, err := l.readServer(ctx); err != nil {
		return fmt.Errorf("%w: %w", patch.ErrConflict, errors.Join(notFound, err))
	}
	return &patch.NoStatusSubresourceError{Object: l.name()}
}

// clockSkew is how far the clocks of two processes may differ. A holder stops that
// much before the end of its lease, and a lease that starts later than that in the
// future is corrected.
const clockSkew = 10 * time.Second

// margin is the part of a lease in which its holder does nothing any more.
func margin(lease time.Duration) time.Duration { return min(clockSkew, lease/4) }

// decision is the decision about a request for a lock.
type decision string

const (
	// acquire: the lock is free.
	acquire decision = "acquire"
	// takeOver: the holder of the lock is gone.
	takeOver decision = "take over"
	// correct: the lock is held since an impossible time; the lease starts now.
	correct decision = "correct"
	// wait: the lock is held.
	wait decision = "wait"
)

// identity is the process that asks for a lock.
type identity struct {
	holder, process string
	// unique is set if no two living processes have the same holder.
	unique bool
}

// request is all that the decision about a lock depends on.
type request struct {
	conditionType ConditionType
	stored        *Condition // nil if there is none
	self          identity
	token         string // of the acquisition to come
	// running reports whether the task of the stored lock is running in this process.
	running bool
	lease   time.Duration
	now     time.Time
	created metav1.Time // when the object was created
	uid     types.UID   // of the object
}

// admission is the answer to a request.
type admission struct {
	decision decision
	// before is the condition that the task is to see, locked the one to write first.
	before, locked Condition
	// held is the error of a caller that has to wait.
	held *LockHeldError
}

// admit decides about a request. It is a pure function.
func admit(r request) admission {
	stored := r.stored
	if stored == nil {
		// The step has been waiting for its start since the object exists.
		stored = &Condition{Type: r.conditionType, Status: ConditionInitialized, LastTransitionTime: r.created}
	}
	if stored.Status != ConditionLocked {
		before := *stored.DeepCopy()
		before.Lock = nil
		return r.grant(acquire, before)
	}
	since, lease := r.leaseOf(stored)
	if r.isHolderGone(stored.Lock) || !r.now.Before(since.Add(lease)) {
		return r.grant(takeOver, beforeLock(stored))
	}
	held := &LockHeldError{Type: r.conditionType, Since: since, RetryAfter: since.Add(lease).Sub(r.now)}
	if stored.Lock != nil {
		held.Holder = stored.Lock.Holder
	}
	if since.After(r.now.Add(clockSkew)) {
		held.Since, held.RetryAfter = r.now, lease
		return admission{decision: correct, locked: withLeaseFrom(*stored.DeepCopy(), r.now), held: held}
	}
	return admission{decision: wait, held: held}
}

// leaseOf returns start and length of the lease. A lock without a record was set
// by another client; it counts from its transition.
func (r request) leaseOf(stored *Condition) (time.Time, time.Duration) {
	switch {
	case stored.Lock == nil:
		return stored.LastTransitionTime.Time, r.lease
	case stored.Lock.Lease.Duration <= 0:
		return stored.Lock.AcquiredAt.Time, r.lease
	default:
		return stored.Lock.AcquiredAt.Time, stored.Lock.Lease.Duration
	}
}

// isHolderGone reports whether the holder certainly is not at work any more: a task of this
// process that does not run, or the predecessor of this process.
func (r request) isHolderGone(lock *LockInfo) bool {
	switch {
	case lock == nil:
		return false
	case lock.Process == r.self.process:
		return !r.running
	default:
		return r.self.unique && lock.Holder == r.self.holder
	}
}

func (r request) grant(decision decision, before Condition) admission {
	key := idempotencyKey(r.uid, before)
	before.AttemptKey = ""
	if before.Status == ConditionError {
		before.AttemptKey = key
	}
	locked := Condition{
		Type: r.conditionType, Status: ConditionLocked, Reason: "Resource locked by " + r.self.holder,
		LastTransitionTime: metav1.NewTime(r.now.UTC().Truncate(time.Second)),
		Lock: &LockInfo{
			Holder: r.self.holder, Process: r.self.process, Token: r.token,
			AcquiredAt: metav1.NewMicroTime(r.now.UTC().Truncate(time.Microsecond)), Lease: metav1.Duration{Duration: r.lease},
			AttemptKey: key, Previous: before.Status, PreviousReason: before.Reason,
		},
	}
	if !before.LastTransitionTime.IsZero() {
		locked.Lock.PreviousTransitionTime = before.LastTransitionTime.DeepCopy()
	}
	return admission{decision: decision, before: before, locked: locked}
}

// beforeLock is the condition as it was before a lock that no holder released. Without a
// record it is Locked: the task has to find out by itself how far the step is.
func beforeLock(stored *Condition) Condition {
	before := Condition{Type: stored.Type, Status: ConditionLocked, Reason: stored.Reason, LastTransitionTime: stored.LastTransitionTime}
	if lock := stored.Lock; lock != nil {
		before.Status, before.Reason = lock.Previous, lock.PreviousReason
		before.LastTransitionTime = metav1.Time{}
		if lock.PreviousTransitionTime != nil {
			before.LastTransitionTime = *lock.PreviousTransitionTime
		}
		if before.Status == ConditionError {
			before.AttemptKey = lock.AttemptKey
		}
	}
	return before
}

func withLeaseFrom(locked Condition, now time.Time) Condition {
	locked.LastTransitionTime = metav1.NewTime(now.UTC().Truncate(time.Second))
	if locked.Lock != nil {
		locked.Lock.AcquiredAt = metav1.NewMicroTime(now.UTC().Truncate(time.Microsecond))
	}
	return locked
}

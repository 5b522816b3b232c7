// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// releaseTimeout bounds the release, which goes on when the context of the reconcile has ended.
	releaseTimeout = 15 * time.Second
	// firstPause is before the second attempt of a release; it doubles up to maxPause.
	firstPause = 20 * time.Millisecond
	maxPause   = time.Second
)

// release writes the final condition, and the task's changes of the status. A change of another
// client is no obstacle as long as the lock is ours.
func (l *Lock) release(ctx context.Context, h *heldLock, final Condition) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.releaseTimeout)
	defer cancel()
	r, err := l.prepareRelease(h, final)
	if err != nil {
		return err
	}
	if l.commit != nil {
		if err := l.commit(ctx); err == nil {
			return nil
		}
		r.version = l.obj.GetResourceVersion()
	}
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		err := l.send(ctx, r)
		switch {
		case err == nil:
			return r.refused
		case apierrors.IsConflict(err):
			finished, lookErr := l.rebase(ctx, r)
			if finished {
				return errors.Join(lookErr, r.refused)
			}
			if lookErr != nil {
				err = lookErr
			}
		case apierrors.IsNotFound(err):
			return l.ignoreDeleted(err)
		case apierrors.IsInvalid(err) && r.refused == nil:
			// The server will never accept the task's changes of the status; it may accept the
			// condition.
			l.dropRefusedStatus(r, err)
		case !isRetriable(err):
			return errors.Join(err, r.refused)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return errors.Join(err, r.refused)
		}
	}
}

// pendingRelease is a release on its way.
type pendingRelease struct {
	hold    *heldLock
	final   Condition
	left    Condition // as the task left it in memory
	memory  Conditions
	content *unstructured.Unstructured // the object in memory
	list    Conditions                 // to be written
	version string                     // the precondition
	rebased bool
	refused error // why the status that the task left was not written
}

func (l *Lock) prepareRelease(h *heldLock, final Condition) (*pendingRelease, error) {
	list := l.obj.Conditions()
	r := &pendingRelease{hold: h, final: final, left: list.FindOrInitializeFor(l.conditionType), version: l.obj.GetResourceVersion()}
	list.set(final)
	r.memory = *list
	r.list = *list
	var err error
	r.content, err = l.content()
	return r, err
}

// send writes the difference between the object after the acquisition and now.
func (l *Lock) send(ctx context.Context, r *pendingRelease) error {
	base := r.hold.base.DeepCopy()
	base.SetResourceVersion(r.version)
	after := base.DeepCopy()
	if status, ok := r.content.Object["status"]; ok {
		after.Object["status"] = status
	}
	after = after.DeepCopy()
	elements, err := convert[[]any](r.list)
	if err != nil {
		return err
	}
	if err := unstructured.SetNestedSlice(after.Object, elements, statusPath(r.hold.path)...); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := l.client.Status().Patch(ctx, after, patch); err != nil {
		return err
	}
	// After a change of another client the object in memory differs from the server's. It keeps its
	// old resourceVersion, so that no write overwrites their change.
	if !r.rebased {
		l.obj.SetResourceVersion(after.GetResourceVersion())
	}
	return nil
}

// rebase puts the release on top of the server's state. It reports whether there is nothing left to
// do.
func (l *Lock) rebase(ctx context.Context, r *pendingRelease) (finished bool, err error) {
	server, err := l.readServer(ctx)
	switch {
	case apierrors.IsNotFound(err):
		return true, l.ignoreDeleted(err)
	case err != nil:
		return !isRetriable(err), err
	case server.GetUID() != l.obj.GetUID():
		return true, fmt.Errorf("%w: the object was deleted and created again", ErrLockLost)
	}
	theirs, err := conditionsAt(server, r.hold.path)
	if err != nil {
		return true, err
	}
	stored := theirs.FindType(l.conditionType)
	r.rebased = true
	switch standingOf(released{stored: stored, token: r.hold.token, before: r.hold.before, left: r.left, final: r.final}) {
	case done:
		return true, nil
	case lost:
		l.obj.Conditions().set(*stored)
		return true, ErrLockLost
	}
	r.version = server.GetResourceVersion()
	r.list = mergeOthers(r.hold.conditions, r.memory, theirs, r.final)
	return false, nil
}

// dropRefusedStatus drops the task's changes of the status, and makes the condition report that.
func (l *Lock) dropRefusedStatus(r *pendingRelease, refused error) {
	r.refused = fmt.Errorf("the status that the task left was refused: %w", refused)
	r.final = Condition{Type: r.final.Type, Status: ConditionError, Reason: boundedReason(r.refused.Error()), AttemptKey: r.hold.key}
	r.final.LastTransitionTime = transition(&r.hold.before, r.final, time.Now())
	r.content = r.hold.base
	r.memory = r.hold.conditions
	r.list = slices.Clone(r.list)
	r.list.set(r.final)
	l.obj.Conditions().set(r.final)
}

// ignoreDeleted decides about an object that is gone, and so has no lock.
func (l *Lock) ignoreDeleted(notFound error) error {
	if l.obj.GetDeletionTimestamp() != nil {
		return nil
	}
	return notFound
}

// isRetriable reports whether another attempt may be answered otherwise.
func isRetriable(err error) bool {
	status := apierrors.APIStatus(nil)
	if !errors.As(err, &status) {
		return true // there was no answer
	}
	return apierrors.IsTooManyRequests(err) || apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) ||
		apierrors.IsInternalError(err) || apierrors.IsServiceUnavailable(err) || apierrors.IsUnexpectedServerError(err)
}

// taskEnd is all that the condition after a task depends on.
type taskEnd struct {
	before, returned Condition
	err              error
	// transient is set if the error is transient, or the task was interrupted.
	transient bool
	// key is the key of the attempt.
	key string
	now time.Time
}

// finalCondition returns the condition to write after a task, and the error to return. It is pure.
func finalCondition(e taskEnd) (Condition, error) {
	final, err := e.returned, e.err
	switch {
	case err != nil && e.transient && e.before.Status != ConditionLocked:
		final = e.before
		final.Reason = err.Error()
	case err != nil:
		final = Condition{Status: ConditionError, Reason: err.Error()}
	default:
		if err = checkReturned(e.before.Type, e.returned); err != nil {
			final = Condition{Status: ConditionError, Reason: err.Error()}
		}
	}
	final.Type, final.Lock, final.AttemptKey = e.before.Type, nil, ""
	if final.Status == ConditionError {
		final.AttemptKey = e.key
	}
	final.Reason = boundedReason(final.Reason)
	final.LastTransitionTime = transition(&e.before, final, e.now)
	return final, err
}

// checkReturned returns an error if the condition of the task does not release the lock.
func checkReturned(conditionType ConditionType, returned Condition) error {
	switch {
	case returned.Status == ConditionLocked:
		return LockNotReleasedErr
	case returned.Type != conditionType:
		return fmt.Errorf("%w: the task returned the condition %q instead of %q", LockNotReleasedErr, returned.Type, conditionType)
	}
	if err := validate(returned); err != nil {
		return fmt.Errorf("%w: %w", LockNotReleasedErr, err)
	}
	return nil
}

// standing is the relation of the stored condition to the lock after a conflict of the first
// attempt to release it.
type standing string

const (
	// ours: the lock is still held, or no other client changed the step.
	ours standing = "ours"
	// done: an earlier attempt arrived, only its answer did not.
	done standing = "done"
	// lost: the lock has another holder now.
	lost standing = "lost"
)

// released is all that the standing depends on.
type released struct {
	stored *Condition // on the server now; nil if there is none
	token  string
	// before is the condition before the lock, left the condition that the task left in memory,
	// final the condition to be written.
	before, left, final Condition
}

// standingOf is pure.
func standingOf(r released) standing {
	switch stored := r.stored; {
	case stored == nil:
		// Removed by hand. Only this process has the outcome of the task.
		return ours
	case stored.Lock != nil && stored.Lock.Token == r.token:
		return ours
	case stored.Status == ConditionLocked:
		return lost
	case same(*stored, r.final):
		return done
	case same(*stored, r.left), same(*stored, r.before):
		// Written by the task itself, or restored.
		return ours
	default:
		return lost
	}
}

// same compares the parts of two conditions that users see.
func same(a, b Condition) bool {
	return a.Status == b.Status && a.Reason == b.Reason && a.LastTransitionTime.Unix() == b.LastTransitionTime.Unix()
}

// mergeOthers returns the conditions to write: final for its type; of all other types the
// conditions that the task changed in memory since base, and else the server's.
func mergeOthers(base, memory, server Conditions, final Condition) Conditions {
	var merged Conditions
	for _, theirs := range server {
		if theirs.Type == final.Type {
			merged = append(merged, final)
			continue
		}
		was, is := base.FindType(theirs.Type), memory.FindType(theirs.Type)
		switch {
		case equality.Semantic.DeepEqual(was, is):
			merged = append(merged, theirs)
		case is != nil:
			merged = append(merged, *is)
		}
	}
	for _, ours := range memory {
		unknown := server.FindType(ours.Type) == nil
		if unknown && ours.Type != final.Type && !equality.Semantic.DeepEqual(base.FindType(ours.Type), &ours) {
			merged = append(merged, ours)
		}
	}
	merged.set(final)
	return merged
}

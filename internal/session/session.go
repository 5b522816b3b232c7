// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/pkg/patch"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

// Between these a reconcile is tried again if the type of its object is not served.
const (
	absenceBase = time.Second
	// Limit: the longest pause between two attempts to reconcile an object whose type the server does not
	// serve.
	absenceLimit = 10 * time.Minute
)

// Sessions opens the sessions of one kind of objects. It is safe for concurrent use with
// different objects, as a controller does:
//
//	session, err := sessions.Open(ctx, key, settingsOf)
//	if err != nil {
//		return reconcile.Result{}, err
//	}
//	session.Run(ctx, func(ctx context.Context) (result.Result, error) {
//		... // what session.Phase asks for
//	})
//	session.Finalize(ctx, finalize)
//	return session.Close(ctx, assess)
type Sessions[T client.Object] struct {
	// Options are complete: each has a value, or its default.
	Options Options[T]
	// Kind is the kind of the objects.
	Kind   string
	memory sync.Map // *remembered, by the key of the object
}

// Settings are what an object itself says about its reconcile, besides its management policy.
type Settings struct {
	// Suspended means that nothing may be created or updated. Deletion is not affected.
	Suspended bool
	// Orphan means that its deletion orphans what was made.
	Orphan bool
}

// Commit makes the metadata and the status of the object durable.
type Commit func(ctx context.Context) error

// Session is one reconcile of one object: from the read of the object to the one write of its
// status at the end. Code that is not ours is called by its methods, which make errors of
// panics.
type Session[T client.Object] struct {
	// Object is the object as it was read. Its metadata and status may be changed.
	Object T
	// Phase is what the reconcile is about.
	Phase Phase
	// Policy is the management policy that applies, or empty if it was not found out.
	Policy v1alpha1.ManagementPolicy
	// Gone means that the object is gone, or does not belong to this process any more: it was
	// handed to another operator, or is being deleted and does not bear our finalizer. What
	// is kept about it in memory can be dropped.
	Gone bool

	sessions *Sessions[T]
	key      client.ObjectKey
	known    *remembered
	patcher  *patch.Helper

	// ended means that nothing is assessed and nothing is written; requeue is the answer then.
	ended   bool
	requeue reconcile.Result

	result result.Result
	err    error
	// refused is the error of our own last write, if the server refused it. An error of
	// pkg/patch in err counts as ours only if it is also here, because a handler may write
	// other objects with pkg/patch.
	refused error
}

// New returns Sessions. The error names every mistake in the options.
func New[T client.Object](options Options[T]) (*Sessions[T], error) {
	if err := options.complete(); err != nil {
		return nil, SetupError[T](err)
	}
	gvk, err := options.Client.GroupVersionKindFor(options.New())
	if err != nil {
		return nil, SetupError[T](err)
	}
	return &Sessions[T]{Options: options, Kind: gvk.Kind}, nil
}

// SetupError says that the lifecycle of a type cannot be set up, and why.
func SetupError[T any](err error) error {
	return fmt.Errorf("set up the lifecycle of %s: %w", reflect.TypeFor[T](), err)
}

// Open reads an object and decides what its reconcile is about. The session may be over
// already; then its methods do nothing, and Close returns when the object is reconciled
// again. Settings returns what the object says about its reconcile.
func (s *Sessions[T]) Open(ctx context.Context, key client.ObjectKey, settingsOf func(T) Settings) (session *Session[T], err error) {
	panicked := contain(func() error {
		session, err = s.open(ctx, key, settingsOf)
		return nil
	})
	if panicked != nil {
		return nil, s.panicked(ctx, key, panicked)
	}
	return session, err
}

func (s *Sessions[T]) panicked(ctx context.Context, key client.ObjectKey, err error) error {
	logPanic(ctx, err)
	return fmt.Errorf("reconcile %s %s: %w", s.Kind, key, err)
}

func (s *Sessions[T]) open(ctx context.Context, key client.ObjectKey, settingsOf func(T) Settings) (*Session[T], error) {
	session := &Session[T]{sessions: s, key: key, Phase: PhaseIgnore}
	if why, ok := errors.AsType[*result.RequeueError](s.leading()); ok {
		return session.endWith(requeueLater(ctx, why)), nil
	}
	obj := s.Options.New()
	switch err := s.Options.Reader.Get(ctx, key, obj); {
	case types.IsGone(err, key.Name):
		session.forgetObject(false)
		return session.endWith(reconcile.Result{}), nil
	case apierrors.IsNotFound(err):
		return session.endWith(s.unserved(ctx, key, err)), nil
	case err != nil:
		return nil, fmt.Errorf("read %s %s: %w", s.Kind, key, err)
	}
	session.known = s.entryOf(key)
	session.known.unserved.Reset()
	return s.begin(ctx, session, obj, settingsOf)
}

// begin decides what the session of an object is about.
func (s *Sessions[T]) begin(ctx context.Context, session *Session[T], obj T, settingsOf func(T) Settings) (*Session[T], error) {
	session.Object = obj
	f, err := s.factsOf(ctx, obj, settingsOf)
	session.Phase, session.Policy, session.err = phaseOf(f), f.policy, err
	if session.Phase == PhaseIgnore {
		s.reportOwner(ctx, obj)
		if err := s.leave(ctx, session); err != nil {
			return nil, err
		}
		session.forgetObject(true)
		return session.endWith(reconcile.Result{}), nil
	}
	options := []patch.HelperOption{patch.WithReader(s.Options.Reader), patch.WithFieldOwner(s.Options.FieldOwner)}
	if !s.Options.PersistSpec {
		options = append(options, patch.WithoutSpec())
	}
	if session.patcher, err = patch.NewHelper(obj, s.Options.Client, options...); err != nil {
		return nil, err
	}
	return session, nil
}

// factsOf asks the object and the annotations. The facts are usable even if there is
// an error: then something is not known, and nothing is to be done but to report that.
func (s *Sessions[T]) factsOf(ctx context.Context, obj T, settingsOf func(T) Settings) (facts, error) {
	f := facts{
		elsewhere: s.isElsewhere(obj),
		deleting:  !obj.GetDeletionTimestamp().IsZero(),
		claimed:   slices.Contains(obj.GetFinalizers(), s.Options.Finalizer),
	}
	if former := s.Options.Former(obj); f.deleting && former != "" {
		f.claimed = f.claimed || slices.Contains(obj.GetFinalizers(), former)
	}
	if phaseOf(f) == PhaseIgnore {
		return f, nil
	}
	err := contain(func() error {
		settings := settingsOf(obj)
		f.suspended, f.orphan = settings.Suspended, settings.Orphan
		return nil
	})
	if err == nil && f.deleting && f.orphan {
		// What the policy is does not matter any more.
		return f, nil
	}
	policy, policyErr := s.policyOf(ctx, obj)
	f.policy = policy
	if phaseOf(f) == PhaseFinalize {
		// To orphan everything, the handler is not needed.
		return f, nil
	}
	if err == nil {
		return f, policyErr
	}
	return f, errors.Join(err, policyErr)
}

// unserved requeues an object about which the server said nothing but 404: the path of its
// type is not served, for a moment or, if its definition was deleted, for good. The former
// must not end the reconciles of an object that exists; the latter must cost little, and less
// and less often.
func (s *Sessions[T]) unserved(ctx context.Context, key client.ObjectKey, err error) reconcile.Result {
	after := s.entryOf(key).unserved.Next(absenceBase, absenceLimit)
	logf.FromContext(ctx).Info("the type of the object is not served; it is requeued", "error", err.Error(), "after", after)
	return reconcile.Result{RequeueAfter: after}
}

// endWith ends the session with a result.
func (p *Session[T]) endWith(requeue reconcile.Result) *Session[T] {
	p.ended, p.requeue = true, requeue
	return p
}

// forgetObject drops what is remembered about the object. An object that still exists may be
// reconciled again; then its events are not sent again.
func (p *Session[T]) forgetObject(exists bool) {
	p.Gone = true
	said := p.sessions.entryOf(p.key).said
	p.sessions.memory.Delete(p.key)
	if exists && said != "" {
		p.sessions.entryOf(p.key).said = said
	}
	if p.sessions.Options.RateLimiter != nil {
		p.sessions.Options.RateLimiter.Forget(reconcile.Request{NamespacedName: p.key})
	}
}

// Run calls f, which does what the phase asks for. It is not called if the session is over, or
// if there is an error already. In deletion, Success means that nothing is left; then the phase
// becomes PhaseFinalize.
func (p *Session[T]) Run(ctx context.Context, f func(context.Context) (result.Result, error)) {
	if p.ended || p.err != nil || p.Phase == PhaseFinalize {
		return
	}
	deleting := p.Phase == PhaseDelete
	if deleting {
		p.sessions.sendOnce(p.Object, corev1.EventTypeNormal, reasonBeginDelete, actionDelete, "the deletion starts")
	}
	p.err = contain(func() (err error) {
		p.result, err = f(ctx)
		return err
	})
	switch {
	case !deleting || p.err != nil:
	case p.result == result.Success:
		p.Phase = PhaseFinalize
	case p.result == result.Empty:
		// Only Success ends a deletion; without it, it goes on.
		p.result = result.Requeue
	}
}

// Claim puts our finalizer on the object, and makes that and other changes of the object
// durable, before anything is done for it.
func (p *Session[T]) Claim(ctx context.Context) error {
	return p.claim(func() error { return p.Commit(ctx) })
}

// ClaimMetadata is Claim for a caller that commits the status before it acts: it makes durable what changed of the
// metadata, and leaves the status to the next Commit.
func (p *Session[T]) ClaimMetadata(ctx context.Context) error {
	return p.claim(func() error {
		if err := p.sessions.leading(); err != nil {
			return err
		}
		return p.noteRefusal(p.patcher.CommitMetadata(ctx, p.Object))
	})
}

func (p *Session[T]) claim(commit func() error) error {
	// The finalizer goes first: if we crashed after the first side effect without
	// it, what was made for a deleted object would be orphaned.
	if controllerutil.AddFinalizer(p.Object, p.sessions.Options.Finalizer) {
		p.known.claiming = p.Object.GetUID()
	}
	controllerutil.RemoveFinalizer(p.Object, p.sessions.Options.Former(p.Object))
	p.sessions.setOwner(p.Object)
	changed, err := p.patcher.MetadataChanged(p.Object)
	if err != nil || !changed {
		return err
	}
	return commit()
}

// Commit makes the metadata and the status of the object durable.
func (p *Session[T]) Commit(ctx context.Context) error {
	if err := p.sessions.leading(); err != nil {
		return err
	}
	err := p.noteRefusal(p.patcher.Commit(ctx, p.Object))
	if err == nil {
		p.known.claiming = ""
	}
	return err
}

// Claiming reports whether this process has put our finalizer on the object and has written no status since.
func (p *Session[T]) Claiming() bool {
	return p.known != nil && p.known.claiming != "" && p.known.claiming == p.Object.GetUID()
}

// noteRefusal remembers the error of a write of our own.
func (p *Session[T]) noteRefusal(err error) error {
	if err != nil {
		p.refused = err
	}
	return err
}

// Finalize removes our finalizer if the phase is PhaseFinalize, in one write. Right before,
// it calls f; an error of f keeps the finalizer. The status stays as it is: usually the
// object is gone after this.
func (p *Session[T]) Finalize(ctx context.Context, f func(ctx context.Context) error) {
	if p.ended || p.err != nil || p.Phase != PhaseFinalize {
		return
	}
	orphaned := p.result != result.Success
	// What came out before does not matter: nothing is left to be done.
	p.result, p.err = result.Empty, p.finalize(ctx, orphaned, f)
	if p.err == nil {
		p.endWith(reconcile.Result{})
	}
}

func (p *Session[T]) finalize(ctx context.Context, orphaned bool, f func(context.Context) error) error {
	if err := p.sessions.leading(); err != nil {
		return err
	}
	if err := contain(func() error { return f(ctx) }); err != nil {
		return err
	}
	controllerutil.RemoveFinalizer(p.Object, p.sessions.Options.Finalizer)
	controllerutil.RemoveFinalizer(p.Object, p.sessions.Options.Former(p.Object))
	if err := p.noteRefusal(p.patcher.PatchMetadata(ctx, p.Object)); err != nil {
		return err
	}
	if orphaned {
		p.sessions.sendOnce(p.Object, corev1.EventTypeNormal, reasonDetached, actionDelete, "what was made for the object is orphaned")
	}
	if len(p.Object.GetFinalizers()) == 0 {
		p.forgetObject(false)
	}
	return nil
}

// remembered is what is remembered about one object. Reconciles of one object do not
// overlap, so the fields need no lock.
type remembered struct {
	// idle counts the reconciles in a row that led to nothing and asked for another one.
	idle backoff.Streak
	// outdated counts those in a row in which the definition of the type did not keep the status.
	outdated backoff.Streak
	// unserved counts those in a row in which the server did not serve the type.
	unserved backoff.Streak
	// attempts counts the errors in a row.
	attempts attempts
	// claiming is the uid of an object that got our finalizer, as long as no status is written.
	claiming apitypes.UID
	// said is the last event that is sent once.
	said string
}

// entryOf returns what is remembered about an object, which may be nothing yet.
func (s *Sessions[T]) entryOf(key client.ObjectKey) *remembered {
	known, _ := s.memory.LoadOrStore(key, &remembered{})
	return known.(*remembered)
}

// contain calls f and makes a *types.PanicError of a panic: an ordinary error, which the condition
// of the object shows and which is tried again. Goroutines that f starts are not contained.
func contain(f func() error) error { return guard.CallNamed("the handler", f) }

func logPanic(ctx context.Context, err error) {
	guard.Log(logf.FromContext(ctx), err, "contained a panic")
}

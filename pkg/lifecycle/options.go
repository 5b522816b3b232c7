// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"time"

	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/pkg/conditions"
)

// Options configure a Reconciler.
type Options[T client.Object] struct {
	// Name is the prefix of the annotations that it reads, as in
	// "buckets.example.com/management-policy". It should be a DNS name that belongs to the author of
	// the operator, and must never change. SetupWithManager requires it.
	//
	// Default: none; there are no annotations
	Name string
	// Client writes the objects. It is required.
	//
	// Default: none; SetupWithManager takes that of the manager
	Client client.Client
	// Reader reads them. It should not be a cache: decisions rest on its answers.
	//
	// Default: the Client; SetupWithManager takes the API reader of the manager
	Reader client.Reader
	// Finalizer is our finalizer.
	//
	// Default: "NAME/finalizer" with the Name; one of both is required
	Finalizer string
	// ManagementPolicy applies to objects without an annotation.
	//
	// Default: manage
	ManagementPolicy v1alpha1.ManagementPolicy
	// Namespaces reads the annotation of an object's namespace. Like Reader it should not be a cache.
	//
	// Default: none: only the annotation of the object itself counts; SetupWithManager takes the API reader of the manager, unless IgnoreNamespaces is set
	Namespaces client.Reader
	// IgnoreNamespaces keeps SetupWithManager from reading and watching namespaces, for operators
	// that have no right to, and for kinds that are not in namespaces.
	//
	// Default: false
	IgnoreNamespaces bool
	// OperatorNamespace, if it is set, makes each object belong to one operator: the one in the
	// namespace of the annotation <Name>/operator-namespace. The Reconciler writes it together with
	// the finalizer, and does nothing, not even a deletion, about objects of other operators. A
	// change of the annotation hands the object over.
	//
	// Default: none; the operator reconciles all objects
	OperatorNamespace string
	// RateLimiter is the rate limiter of the controller, made by NewRateLimiter. With it, errors
	// that have a retry class requeue the object by that class; without, the controller's own rate
	// limiter decides.
	//
	// Default: none; SetupWithManager makes one
	RateLimiter *session.RateLimiter
	// MaxConcurrentReconciles is how many objects are reconciled at the same time by a controller of
	// SetupWithManager.
	//
	// Unit: objects
	// Default: what the manager says, else 5
	MaxConcurrentReconciles int
	// FieldOwner is the name under which the server records our writes.
	//
	// Default: the finalizer
	FieldOwner string
	// Recorder gets an event for every change of Ready's status or reason.
	//
	// Default: none; no events are sent
	Recorder events.EventRecorder
	// New returns an empty object to read into. Unstructured objects need their kind set.
	//
	// Default: a new T, which must be a pointer to a struct then
	New func() T
	// Conditions gives access to the object's conditions.
	//
	// Default: the object itself, if it is a conditions.Setter
	Conditions func(obj T) conditions.Setter
	// RequeueInterval is when an object is requeued at the latest, whatever the outcome, unless the
	// object is suspended.
	//
	// Default: 10 minutes
	RequeueInterval time.Duration
	// Jitter is the greatest share by which an object is requeued early at random, so that many
	// objects do not stay in step. A negative one means none.
	//
	// Unit: share of the delay
	// Default: 0.1
	Jitter float64
	// Leading returns an error if another process may act in place of this one by now, for example because the lease is too
	// old. The Reconciler calls it before each reconcile, each write of the object and its finalization. An error ends the
	// reconcile: nothing is written, no event is sent, and the object is requeued after five seconds.
	//
	// Default: this process may always act
	Leading func() error
	// PersistSpec also writes changes of the spec.
	//
	// Default: false: they stay in memory, because the spec belongs to the user
	PersistSpec bool
	// ObservedGenerationAlways sets status.observedGeneration to the generation that was reconciled,
	// whatever the outcome.
	//
	// Default: false: only after success, when there was nothing to do, and when stalled
	ObservedGenerationAlways bool
}

// NewRateLimiter returns the rate limiter of a controller's queue that knows the retry class of
// the error that a Reconciler has just returned. Errors without a class are held back for 200 ms,
// doubling up to two minutes. Give it to the controller and, as option RateLimiter, to the
// Reconciler. SetupWithManager does both.
func NewRateLimiter() *session.RateLimiter { return session.NewRateLimiter() }

// ofSessions returns the options of the sessions.
func (o *Options[T]) ofSessions() session.Options[T] {
	return session.Options[T]{
		Name:                     o.Name,
		Client:                   o.Client,
		Reader:                   o.Reader,
		Finalizer:                o.Finalizer,
		ManagementPolicy:         o.ManagementPolicy,
		Namespaces:               o.Namespaces,
		OperatorNamespace:        o.OperatorNamespace,
		RateLimiter:              o.RateLimiter,
		FieldOwner:               o.FieldOwner,
		Recorder:                 o.Recorder,
		New:                      o.New,
		Conditions:               o.Conditions,
		RequeueInterval:          o.RequeueInterval,
		Jitter:                   o.Jitter,
		PersistSpec:              o.PersistSpec,
		ObservedGenerationAlways: o.ObservedGenerationAlways,
		Leading:                  o.Leading,
	}
}

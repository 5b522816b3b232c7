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
	// Name is the prefix of the annotations, as in "buckets.example.com/management-policy": a DNS name of the
	// author that never changes. SetupWithManager requires it.
	//
	// Default: none
	Name string
	// Client writes the objects.
	//
	// Default: the client of the manager, in SetupWithManager
	Client client.Client
	// Reader reads the objects. It should not be a cache.
	//
	// Default: the Client; in SetupWithManager the API reader of the manager
	Reader client.Reader
	// Finalizer is the finalizer of the operator. It is required without a Name.
	//
	// Default: "NAME/finalizer"
	Finalizer string
	// ManagementPolicy applies to objects without an annotation.
	//
	// Default: manage
	ManagementPolicy v1alpha1.ManagementPolicy
	// Namespaces reads the annotation of the namespace of an object. It should not be a cache.
	//
	// Default: none; in SetupWithManager the API reader of the manager, unless IgnoreNamespaces is set
	Namespaces client.Reader
	// IgnoreNamespaces keeps SetupWithManager from reading and watching namespaces, for operators without the
	// right and for kinds without namespaces.
	//
	// Default: false
	IgnoreNamespaces bool
	// OperatorNamespace makes each object belong to the operator in the namespace of the annotation
	// <Name>/operator-namespace, which the Reconciler writes with the finalizer. The Reconciler ignores objects of
	// other operators.
	//
	// Default: none: the operator reconciles all objects
	OperatorNamespace string
	// RateLimiter is the rate limiter of the controller, made by NewRateLimiter. With it, the retry class of an
	// error decides about the delay.
	//
	// Default: a new one, in SetupWithManager
	RateLimiter *session.RateLimiter
	// MaxConcurrentReconciles is how many objects a controller of SetupWithManager reconciles at the same time.
	//
	// Default: what the manager says, else 5
	// Unit: objects
	MaxConcurrentReconciles int
	// FieldOwner is the field manager of all writes.
	//
	// Default: the finalizer
	FieldOwner string
	// Recorder gets an event for every change of the status or the reason of Ready.
	//
	// Default: none
	Recorder events.EventRecorder
	// New returns an empty object to read into. An unstructured object needs its kind.
	//
	// Default: a new T, which must be a pointer to a struct
	New func() T
	// Conditions gives access to the object's conditions.
	//
	// Default: the object itself, if it is a conditions.Setter
	Conditions func(obj T) conditions.Setter
	// RequeueInterval is when an object is requeued at the latest, unless it is suspended.
	//
	// Default: 10 minutes
	RequeueInterval time.Duration
	// Jitter is the greatest share by which an object is requeued early at random. A negative one means none.
	//
	// Default: 0.1
	// Unit: share of the delay
	Jitter float64
	// Leading returns an error if another process may lead. The Reconciler calls it before each reconcile, write
	// and finalization. After an error nothing is written, and the object is requeued after five seconds.
	//
	// Default: this process may always act
	Leading func() error
	// PersistSpec also writes changes of the spec.
	//
	// Default: false
	PersistSpec bool
	// ObservedGenerationAlways sets status.observedGeneration after each reconcile, whatever the outcome.
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

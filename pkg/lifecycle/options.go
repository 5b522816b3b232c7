// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/conditions"
)

const defaultRequeueInterval = 10 * time.Minute

// Options configure a Loop.
type Options[T client.Object] struct {
	// Client writes the objects. Required.
	Client client.Client
	// Reader reads them. It should not be a cache: decisions rest on what it
	// returns. Default is the Client.
	Reader client.Reader
	// Finalizer is our finalizer. Required.
	Finalizer string
	// FieldOwner is the name under which the server records our writes.
	// Default is the finalizer.
	FieldOwner string
	// Recorder gets an event for every change of Ready's status or reason.
	// Default is none.
	Recorder events.EventRecorder
	// Clock is the time for the conditions. Default is time.Now.
	Clock func() time.Time
	// New returns an empty object to read into. Default is a new T, which must be
	// a pointer to a struct then. Unstructured objects need their kind set.
	New func() T
	// Conditions gives access to the object's conditions. Default is the object
	// itself, if it is a conditions.Setter.
	Conditions func(obj T) conditions.Setter
	// RequeueInterval is when an object comes again after success and when
	// stalled, unless the handler is a Builder. Default is 10 minutes.
	RequeueInterval time.Duration
	// PersistSpec also writes changes of the spec. By default they stay in
	// memory, because the spec belongs to the user.
	PersistSpec bool
	// ObservedGenerationAlways sets status.observedGeneration to the generation
	// that the pass judged, whatever came out. Default is only after success, when
	// there was nothing to do, and when stalled.
	ObservedGenerationAlways bool
}

// complete checks the options and fills in the defaults. All mistakes are in the
// one error.
func (o *Options[T]) complete() error {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("option Client is missing"))
	}
	if problems := validation.ValidateFinalizerName(o.Finalizer, nil); o.Finalizer == "" || len(problems) > 0 {
		errs = append(errs, fmt.Errorf("option Finalizer is no valid finalizer: %q", o.Finalizer))
	}
	if o.RequeueInterval < 0 {
		errs = append(errs, fmt.Errorf("option RequeueInterval is negative: %s", o.RequeueInterval))
	}
	errs = append(errs, o.completeType())
	if o.Reader == nil {
		o.Reader = o.Client
	}
	if o.Clock == nil {
		o.Clock = time.Now
	}
	o.FieldOwner = cmp.Or(o.FieldOwner, o.Finalizer)
	o.RequeueInterval = cmp.Or(o.RequeueInterval, defaultRequeueInterval)
	return errors.Join(errs...)
}

// completeType finds out how to make objects and how to reach their conditions.
func (o *Options[T]) completeType() error {
	t := reflect.TypeFor[T]()
	if o.New == nil {
		if t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
			return fmt.Errorf("option New is missing, and %s is not a pointer to a struct", t)
		}
		o.New = func() T { return reflect.New(t.Elem()).Interface().(T) }
	}
	if o.Conditions == nil {
		if !t.Implements(reflect.TypeFor[conditions.Setter]()) {
			return fmt.Errorf("option Conditions is missing, and %s is not a conditions.Setter", t)
		}
		o.Conditions = func(obj T) conditions.Setter { return any(obj).(conditions.Setter) }
	}
	return nil
}

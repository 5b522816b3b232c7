// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/validation"
	apivalidation "k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/pkg/conditions"
)

const (
	defaultRequeueInterval = 10 * time.Minute
	defaultJitter          = 0.1
)

// Options configure Sessions. The options of pkg/lifecycle of the same names are their description, and say what the defaults are.
type Options[T client.Object] struct {
	Name              string
	Client            client.Client
	Reader            client.Reader
	Finalizer         string
	ManagementPolicy  v1alpha1.ManagementPolicy
	Namespaces        client.Reader
	OperatorNamespace string
	RateLimiter       *RateLimiter
	FieldOwner        string
	Recorder          events.Recorder
	New               func() T
	Conditions        func(obj T) conditions.Setter
	RequeueInterval   time.Duration
	Jitter            float64
	// Leading should cost nothing. A RequeueError says when the object is requeued.
	Leading func() error
	// Elsewhere says that another operator has claimed an object, for a Warning event with the reason OwnerConflict; it is empty if
	// none has. Nothing is written to such an object, but that a finalizer which this process has just put on it is removed.
	Elsewhere func(obj T) string
	// Former returns the finalizer of the operator from which this operator takes an object over; empty if there is none. The
	// write that claims the object removes the finalizer. In a deletion the finalizer counts as ours.
	Former func(obj T) string

	PersistSpec, ObservedGenerationAlways bool
}

// complete checks the options and fills in the defaults. All mistakes are in the
// one error.
func (o *Options[T]) complete() error {
	var errs []error
	if o.Client == nil {
		errs = append(errs, errors.New("option Client is missing"))
	}
	errs = append(errs, o.completeName()...)
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
	if o.Recorder != nil {
		o.Recorder = events.Bounded(o.Recorder)
	}
	if o.Leading == nil {
		o.Leading = func() error { return nil }
	}
	none := func(T) string { return "" }
	if o.Elsewhere == nil {
		o.Elsewhere = none
	}
	if o.Former == nil {
		o.Former = none
	}
	o.FieldOwner = cmp.Or(o.FieldOwner, o.Finalizer)
	o.RequeueInterval = cmp.Or(o.RequeueInterval, defaultRequeueInterval)
	o.Jitter = max(cmp.Or(o.Jitter, defaultJitter), 0)
	return errors.Join(errs...)
}

// completeName checks the name and what needs it.
func (o *Options[T]) completeName() []error {
	var errs []error
	if problems := apivalidation.IsDNS1123Subdomain(o.Name); o.Name != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("option Name %q: %s", o.Name, strings.Join(problems, ", ")))
	}
	if o.Finalizer == "" && o.Name != "" {
		o.Finalizer = o.Name + "/finalizer"
	}
	o.ManagementPolicy = cmp.Or(o.ManagementPolicy, v1alpha1.ManagementPolicyManage)
	policy, err := parseManagementPolicy(string(o.ManagementPolicy))
	if err != nil {
		errs = append(errs, fmt.Errorf("option ManagementPolicy: %w", err))
	}
	o.ManagementPolicy = policy
	if problems := apivalidation.IsDNS1123Label(o.OperatorNamespace); o.OperatorNamespace != "" && len(problems) > 0 {
		errs = append(errs, fmt.Errorf("option OperatorNamespace %q: %s", o.OperatorNamespace, strings.Join(problems, ", ")))
	}
	if o.Name == "" && (o.Namespaces != nil || o.OperatorNamespace != "") {
		errs = append(errs, errors.New("option Name is missing: the annotations of the options Namespaces and OperatorNamespace need it"))
	}
	return errs
}

// early takes the jitter off a delay.
func (o *Options[T]) early(delay time.Duration) time.Duration {
	return delay - time.Duration(float64(delay)*o.Jitter*backoff.Random())
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

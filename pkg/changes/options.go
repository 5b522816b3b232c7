// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// Options configure a Controller. The zero value is fine.
type Options struct {
	// RetryPolicy decides about errors. Default is DefaultRetryPolicy.
	RetryPolicy RetryPolicy
	// Changed tells whether a change counts. It gets two states of one object and must
	// not change them. Default is ContentChanged for opinionated reconcilers and
	// AnythingChanged for plain ones.
	Changed func(oldObj, newObj client.Object) bool
	// ResyncInterval is how long after success ReconcileActionResynced comes, plus up to
	// a tenth; also how long after an error that is not retried the next attempt
	// is made. Default is never. Independent of it, a resync of the cache (every ten
	// hours, unless its options say otherwise) does the same.
	ResyncInterval time.Duration
	// CacheOptions makes the controller watch through a cache of its own with these
	// options: namespaces, selectors, transformations, resyncs. Where they are
	// empty, the scheme, the mapper and the HTTP client are those of the manager. Default
	// is the cache of the manager, with the options that the manager has for it.
	CacheOptions *cache.Options
	// NewCache makes the cache of its own. Default is cache.New.
	NewCache cache.NewCacheFunc
	// Controller is passed on to controller-runtime: concurrency, leader election,
	// timeouts. Its Reconciler and RateLimiter must be nil. EnableWarmup must not be
	// true, and that of the manager does not apply: a process that waits to lead
	// would remember every object that is deleted, and tell each once more.
	Controller controller.Options
}

// complete fills in the defaults and returns all mistakes in one error.
func (o *Options) complete(opinionated bool) error {
	var errs []error
	if o.RetryPolicy == nil {
		o.RetryPolicy = DefaultRetryPolicy
	}
	if o.Changed == nil {
		o.Changed = AnythingChanged
		if opinionated {
			o.Changed = ContentChanged
		}
	}
	if o.ResyncInterval < 0 {
		errs = append(errs, fmt.Errorf("option ResyncInterval is negative: %s", o.ResyncInterval))
	}
	if o.Controller.Reconciler != nil {
		errs = append(errs, errors.New("option Controller has a Reconciler, which is given apart"))
	}
	if o.Controller.RateLimiter != nil {
		errs = append(errs, errors.New("option Controller has a RateLimiter: use the option RetryPolicy"))
	}
	if warm := o.Controller.EnableWarmup; warm != nil && *warm {
		errs = append(errs, errors.New("option Controller enables EnableWarmup: a process that does not lead would remember every object that is deleted; leave it out"))
	}
	o.Controller.EnableWarmup = new(bool)
	if o.NewCache != nil && o.CacheOptions == nil {
		o.CacheOptions = &cache.Options{}
	}
	if o.NewCache == nil {
		o.NewCache = cache.New
	}
	return errors.Join(errs...)
}

// isNil tells whether an interface holds nothing, or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

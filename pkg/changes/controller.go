// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/events"
)

// Controller calls a Reconciler for every change of the objects of a kind.
type Controller struct {
	name       string
	kind       client.Object
	reconciler Reconciler
	options    Options
}

// NewController returns a controller. The name is unique in the process; metrics and logs have it,
// and it is the field manager of the writes. Kind is an empty object of the type that is watched:
// of an API type; *unstructured.Unstructured with apiVersion and kind; or
// *metav1.PartialObjectMetadata with both, which keeps only metadata in memory. Mistakes are
// reported by SetupWithManager.
func NewController(name string, kind client.Object, reconciler Reconciler, options Options) *Controller {
	return &Controller{name: name, kind: kind, reconciler: reconciler, options: options}
}

// SetupWithManager registers the controller with the manager. The scheme of the manager must
// have the kind. The one error names all mistakes. A second version of a kind is refused if
// another controller of this package in the same manager watches the first: each change would
// be reported twice, in two forms.
func (c *Controller) SetupWithManager(mgr ctrl.Manager) error {
	if err := c.setup(mgr); err != nil {
		return fmt.Errorf("set up controller %s: %w", c.name, err)
	}
	return nil
}

func (c *Controller) setup(mgr ctrl.Manager) error {
	options := c.options
	wanted, isOpinionated := c.reconciler.(opinionated)
	errs := []error{options.complete(isOpinionated)}
	if c.name == "" {
		errs = append(errs, errors.New("the name is missing"))
	}
	if mgr == nil {
		errs = append(errs, errors.New("the manager is nil"))
	}
	var finalizers ownFinalizers
	if isNil(c.kind) {
		errs = append(errs, errors.New("the kind is nil"))
	} else {
		errs = append(errs, acceptedBy(c.reconciler, c.kind))
	}
	if isOpinionated && !isNil(c.reconciler) {
		finalizers.finalizer = wanted.finalizer()
		errs = append(errs, checkFinalizer(finalizers.finalizer))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(c.kind, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("the scheme of the manager does not know the kind: %w", err)
	}
	undo, err := watched.add(mgr, watch{controller: c.name, kind: gvk, finalizer: finalizers.finalizer})
	if err != nil {
		return err
	}
	if err := c.start(mgr, gvk, finalizers, options); err != nil {
		undo()
		return err
	}
	return nil
}

// start adds the controller to the manager. The options must be complete.
func (c *Controller) start(mgr ctrl.Manager, gvk schema.GroupVersionKind, finalizers ownFinalizers, options Options) error {
	from, err := c.cache(mgr, options)
	if err != nil {
		return err
	}
	r := &runner{
		reconciler:  c.reconciler,
		policy:      options.RetryPolicy,
		interval:    options.ResyncInterval,
		finalizers:  &finalizerWriter{ownFinalizers: finalizers, client: mgr.GetClient(), reader: mgr.GetAPIReader(), kind: gvk.GroupKind(), owner: c.name},
		memory:      newMemory(options.Changed, finalizers),
		limiter:     newLimiter(),
		writeDelays: workqueue.NewTypedItemExponentialFailureRateLimiter[client.ObjectKey](writeRetryInitial, defaultRetryMax),
		gaveUp:      gaveUp(c.name, events.NewRecorder(mgr, c.name)),
		now:         time.Now,
		random:      backoff.Random,
	}
	settings := options.Controller
	settings.Reconciler, settings.RateLimiter = r, r.limiter
	ctl, err := controller.New(c.name, mgr, settings)
	if err != nil {
		return err
	}
	return ctl.Watch(source.Kind[client.Object](from, c.kind, &listener{memory: r.memory}))
}

// reasonGaveUp means that a controller of package changes failed to handle a change, and tries again only after
// the next change or resync. The log of the operator has the error.
//
// Event type: Warning
// What to do: correct the cause, and change the object.
const reasonGaveUp = "GaveUp"

// gaveUp sends an event about an action that is not retried. The error is in the log only: an event
// can be read by more people.
func gaveUp(controller string, recorder events.Recorder) func(client.Object, ReconcileAction) {
	return func(obj client.Object, action ReconcileAction) {
		recorder.Eventf(obj, nil, corev1.EventTypeWarning, reasonGaveUp, string(action),
			"controller %s could not handle that it was %s, and does not try again until it changes or is resynced; the log says why",
			controller, strings.ToLower(string(action)))
	}
}

// cache returns the cache to watch through.
func (c *Controller) cache(mgr ctrl.Manager, options Options) (cache.Cache, error) {
	if options.CacheOptions == nil {
		return mgr.GetCache(), nil
	}
	settings := *options.CacheOptions
	if settings.Scheme == nil {
		settings.Scheme = mgr.GetScheme()
	}
	if settings.Mapper == nil {
		settings.Mapper = mgr.GetRESTMapper()
	}
	if settings.HTTPClient == nil {
		settings.HTTPClient = mgr.GetHTTPClient()
	}
	own, err := options.NewCache(mgr.GetConfig(), settings)
	if err != nil {
		return nil, fmt.Errorf("make a cache: %w", err)
	}
	return own, mgr.Add(ownCache{own})
}

// ownCache makes a manager start a cache before the controllers.
type ownCache struct{ cache.Cache }

// GetCache is how the manager knows it.
func (o ownCache) GetCache() cache.Cache { return o.Cache }

// Options configure a Controller.
type Options struct {
	// RetryPolicy decides about errors.
	//
	// Default: DefaultRetryPolicy
	RetryPolicy RetryPolicy
	// Changed reports whether a change counts. It must not change the two states of the object.
	//
	// Default: ContentChanged for opinionated reconcilers and AnythingChanged for plain ones
	Changed func(oldObj, newObj client.Object) bool
	// ResyncInterval is how long after success ReconcileActionResynced comes, plus up to a tenth, and the next
	// attempt after an error that is not retried. A resync of the cache does the same.
	//
	// Default: never
	ResyncInterval time.Duration
	// CacheOptions makes the controller watch through a cache of its own with these options. Empty ones for
	// scheme, mapper and HTTP client are those of the manager.
	//
	// Default: the cache of the manager
	CacheOptions *cache.Options
	// NewCache makes this cache.
	//
	// Default: cache.New
	NewCache cache.NewCacheFunc
	// Controller are options of controller-runtime: concurrency, leader election, timeouts. Reconciler and
	// RateLimiter must be nil, and EnableWarmup must not be true.
	//
	// Default: those of controller-runtime
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
		errs = append(errs, errors.New("option Controller enables EnableWarmup: a process that does not lead would remember every object that is deleted; remove the option"))
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

// isNil reports whether an interface holds nothing, or a nil pointer.
func isNil(value any) bool {
	v := reflect.ValueOf(value)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// watch is the watch of a controller.
type watch struct {
	controller string
	kind       schema.GroupVersionKind
	finalizer  string
}

// watched are the watches of every manager of the process.
var watched = watches{of: map[ctrl.Manager][]watch{}}

type watches struct {
	mu sync.Mutex
	of map[ctrl.Manager][]watch
}

// add adds a watch, unless it conflicts with another one. The function that it returns
// removes the watch again.
func (w *watches) add(mgr ctrl.Manager, added watch) (func(), error) {
	if !reflect.ValueOf(mgr).Comparable() {
		return func() {}, nil // a wrapper that cannot be distinguished from another
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	others, known := w.of[mgr]
	if err := added.fits(others); err != nil {
		return nil, err
	}
	if !known {
		// A manager that has ended is not kept in memory.
		forget := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.of, mgr)
			return nil
		})
		if err := mgr.Add(forget); err != nil {
			return nil, err
		}
	}
	w.of[mgr] = append(slices.Clone(others), added)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.of[mgr] = slices.DeleteFunc(w.of[mgr], func(other watch) bool { return other == added })
	}, nil
}

// fits checks a watch against the other watches.
func (a watch) fits(others []watch) error {
	for _, other := range others {
		if a.kind.GroupKind() != other.kind.GroupKind() {
			continue
		}
		if a.kind.Version != other.kind.Version {
			return fmt.Errorf("it watches version %s of %s, and controller %s watches version %s: watch one version of a kind, usually the latest",
				a.kind.Version, a.kind.GroupKind(), other.controller, other.kind.Version)
		}
		if a.finalizer != "" && (a.finalizer == other.finalizer || a.finalizer+pendingSuffix == other.finalizer || a.finalizer == other.finalizer+pendingSuffix) {
			return fmt.Errorf("its Finalizer %s on %s is one of controller %s: each needs its own, or the first to finish lets the object go",
				a.finalizer, a.kind.GroupKind(), other.controller)
		}
	}
	return nil
}

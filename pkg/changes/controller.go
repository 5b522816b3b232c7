// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"errors"
	"fmt"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
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

// NewController returns a controller. The name is unique in the process; it is that of
// its metrics and logs, and the field manager of its writes. Kind is an empty object of
// the type that is watched: of an API type; *unstructured.Unstructured with apiVersion
// and kind; or *metav1.PartialObjectMetadata with both, which keeps only metadata in
// memory. Mistakes are reported by SetupWithManager.
func NewController(name string, kind client.Object, reconciler Reconciler, options Options) *Controller {
	return &Controller{name: name, kind: kind, reconciler: reconciler, options: options}
}

// SetupWithManager registers the controller with the manager, whose scheme must know the
// kind. The one error names all mistakes. A second version of a kind is refused that
// another controller of this package in the same manager watches: each change would be
// reported twice, in two forms.
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
	var marks marks
	if isNil(c.kind) {
		errs = append(errs, errors.New("the kind is nil"))
	} else {
		errs = append(errs, acceptedBy(c.reconciler, c.kind))
	}
	if isOpinionated && !isNil(c.reconciler) {
		marks.finalizer = wanted.finalizer()
		errs = append(errs, checkFinalizer(marks.finalizer))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	gvk, err := apiutil.GVKForObject(c.kind, mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("the scheme of the manager does not know the kind: %w", err)
	}
	release, err := watched.add(mgr, watch{controller: c.name, kind: gvk, finalizer: marks.finalizer})
	if err != nil {
		return err
	}
	if err := c.start(mgr, gvk, marks, options); err != nil {
		release()
		return err
	}
	return nil
}

// start wires the controller, whose options are complete, to the manager.
func (c *Controller) start(mgr ctrl.Manager, gvk schema.GroupVersionKind, marks marks, options Options) error {
	source, err := c.cache(mgr, options)
	if err != nil {
		return err
	}
	r := &runner{
		reconciler: c.reconciler,
		policy:     options.RetryPolicy,
		interval:   options.ResyncInterval,
		scribe:     &scribe{marks: marks, client: mgr.GetClient(), reader: mgr.GetAPIReader(), kind: gvk.GroupKind(), owner: c.name},
		memory:     newMemory(options.Changed, marks),
		limiter:    newLimiter(),
		activity:   backoff.NewActivity[client.ObjectKey](writeRetryInitial, defaultRetryMax),
		gaveUp:     gaveUp(c.name, events.NewRecorder(mgr, c.name)),
		now:        time.Now,
		random:     backoff.Random,
	}
	settings := options.Controller
	settings.Reconciler, settings.RateLimiter = r, r.limiter
	ctl, err := controller.New(c.name, mgr, settings)
	if err != nil {
		return err
	}
	return ctl.Watch(watchOf(source, c.kind, r.memory))
}

// gaveUp sends an event about what is not retried. The error is in the log only: an event
// can be read by more people.
func gaveUp(controller string, recorder events.Recorder) func(client.Object, ReconcileAction) {
	return func(obj client.Object, action ReconcileAction) {
		recorder.Eventf(obj, nil, corev1.EventTypeWarning, "GaveUp", string(action),
			"controller %s could not handle that it was %s, and does not try again until it changes or is resynced; the log says why",
			controller, strings.ToLower(string(action)))
	}
}

func watchOf(from cache.Cache, kind client.Object, memory *memory) source.Source {
	return source.Kind[client.Object](from, kind, &listener{memory: memory})
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

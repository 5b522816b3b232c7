// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"errors"
	"fmt"
	"strings"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"

	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/session"
)

// SetupWithManager runs a Reconciler for the handler in a controller of the manager. The scheme
// of the manager must have the type T. The controller watches the objects and, unless
// IgnoreNamespaces is set, the metadata of their namespaces; it keeps metadata only in
// its cache, and reads objects from the server. The operator needs these rights: get,
// list, watch and patch of the objects, patch of their status; get, list and watch of
// namespaces; create and patch of events.
//
// The option Name is required; Client, Reader, Namespaces, Recorder and RateLimiter
// have the manager's as defaults. All mistakes are in the one error.
func SetupWithManager[T client.Object](mgr ctrl.Manager, handler Handler[T], options Options[T]) error {
	if mgr == nil {
		return errors.New("set up a lifecycle: the manager is nil")
	}
	if options.RateLimiter == nil {
		options.RateLimiter = NewRateLimiter()
	}
	blder := ctrl.NewControllerManagedBy(mgr).WithOptions(controller.Options{
		RateLimiter: options.RateLimiter, MaxConcurrentReconciles: session.ConcurrencyOf(options.MaxConcurrentReconciles, mgr.GetControllerOptions()),
	})
	return SetupWithManagerAndBuilder(mgr, blder, handler, options)
}

// SetupWithManagerAndBuilder is SetupWithManager for a controller that has options and
// watches of its own. The options of the builder are left alone: for retry classes give
// it the RateLimiter of the options.
func SetupWithManagerAndBuilder[T client.Object](mgr ctrl.Manager, blder *ctrl.Builder, handler Handler[T], options Options[T]) error {
	if mgr == nil || blder == nil {
		return errors.New("set up a lifecycle: the manager or the builder is nil")
	}
	options.takeFrom(mgr)
	r, err := NewReconciler(handler, options)
	if err != nil {
		return err
	}
	if options.Name == "" {
		return fmt.Errorf("set up the lifecycle of %s: option Name is missing", r.sessions.Kind)
	}
	gvk, err := apiutil.GVKForObject(r.sessions.Options.New(), mgr.GetScheme())
	if err != nil {
		return fmt.Errorf("set up the lifecycle of %s: %w", r.sessions.Kind, err)
	}
	if r.sessions.Options.Namespaces != nil {
		session.WatchNamespaces(mgr, blder, gvk, options.Name)
	}
	return blder.
		// The watch needs no more than metadata.
		For(r.sessions.Options.New(), builder.OnlyMetadata, builder.WithPredicates(session.Significant(r.sessions.Options.Finalizer))).
		Named(strings.ToLower(gvk.GroupKind().String())).
		Complete(r)
}

// takeFrom completes the options from a manager.
func (o *Options[T]) takeFrom(mgr ctrl.Manager) {
	if o.Client == nil {
		o.Client = mgr.GetClient()
	}
	if o.Reader == nil {
		o.Reader = mgr.GetAPIReader()
	}
	if o.Namespaces == nil && !o.IgnoreNamespaces && o.Name != "" {
		o.Namespaces = mgr.GetAPIReader()
	}
	if o.Recorder == nil {
		o.Recorder = events.NewRecorder(mgr, o.Name)
	}
}

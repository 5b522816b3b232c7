// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/events"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/session"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/outputs"
	"github.com/corbel-run/corbel/pkg/component/internal/record"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/targets"
	"github.com/corbel-run/corbel/pkg/component/internal/telemetry"
	"github.com/corbel-run/corbel/pkg/component/internal/trigger"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

// SetupWithManager registers the reconciler with the manager. The manager's
// scheme must know the type T and the core types.
//
// It reports every mistake that was made in wiring the reconciler: an illegal
// name or option, a nil generator or hook, a type that is no component. A
// reconciler can be set up once.
func (r *Reconciler[T]) SetupWithManager(mgr ctrl.Manager) error {
	if mgr == nil {
		return r.setupError(errors.Join(append(r.wiring(), errors.New("the manager is nil"))...))
	}
	options := r.settings.controllerOptions(mgr)
	if gvk, err := apiutil.GVKForObject(newComponent[T](), mgr.GetScheme()); err == nil { // otherwise the setup reports it
		options.LogConstructor = telemetry.LogConstructor(mgr.GetLogger(), controllerName(gvk), gvk)
	}
	workers, triggers := cmp.Or(options.MaxConcurrentReconciles, mgr.GetControllerOptions().MaxConcurrentReconciles), trigger.New()
	if usesPriorities := mgr.GetControllerOptions().UsePriorityQueue; usesPriorities == nil || *usesPriorities {
		options.NewQueue = triggers.Prioritized
	}
	return r.setup(mgr, ctrl.NewControllerManagedBy(mgr).WithOptions(options), workers, triggers)
}

// SetupWithManagerAndBuilder registers the reconciler with the manager by way of
// the given builder, which may have options and further watches. The reconciler
// adds the watch of T, the name of the controller and itself. The options of the
// builder are left alone; so, unless they say otherwise, one component is reconciled
// at a time, and the rate limiter is that of controller-runtime.
func (r *Reconciler[T]) SetupWithManagerAndBuilder(mgr ctrl.Manager, blder *ctrl.Builder) error {
	triggers := trigger.New()
	triggers.AlwaysFull = true // the watches of the builder cannot tell the cause of a reconcile
	return r.setup(mgr, blder, 0, triggers)
}

// setup registers the reconciler. Workers is how many components will be reconciled
// at the same time; 0 if that is not known.
func (r *Reconciler[T]) setup(mgr ctrl.Manager, blder *ctrl.Builder, workers int, triggers *trigger.Queue) error {
	mistakes := r.wiring()
	if mgr == nil {
		mistakes = append(mistakes, errors.New("the manager is nil"))
	}
	if blder == nil {
		mistakes = append(mistakes, errors.New("the builder is nil"))
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.running.Load() != nil {
		mistakes = append(mistakes, errors.New("it was set up before"))
	}
	if err := errors.Join(mistakes...); err != nil {
		return r.setupError(err)
	}
	gvk, err := apiutil.GVKForObject(newComponent[T](), mgr.GetScheme())
	if err != nil {
		return r.setupError(fmt.Errorf("the scheme of the manager does not know the component type: %w", err))
	}
	uncached, err := newLocalClient(mgr, r.settings.newClient)
	if err != nil {
		return r.setupError(err)
	}
	running := &running{triggers: triggers}
	if running.handler, err = r.connect(mgr, confidential.Client(uncached), triggers, gvk, workers); err != nil {
		return r.setupError(err)
	}
	if r.settings.users.NamespaceManagementPolicies {
		session.WatchNamespaces(mgr, blder, gvk, r.settings.Name)
	}
	if running.handler.previews != nil {
		blder.Watches(newComponent[T](), running.handler.previews.events(), builder.OnlyMetadata, builder.WithPredicates(inShard(r.settings.selector)))
	}
	// Before Complete, because in a manager that runs the controller starts at once.
	r.running.Store(running)
	significant := predicate.Or(session.Significant(r.settings.Finalizer, r.settings.Name+"/"+vocabulary.AnnotationPreview), approvalIsForeign(r.settings.FieldOwner))
	err = blder.
		// The watch needs no more than metadata, and so no object that cannot be decoded stops it.
		For(newComponent[T](), builder.OnlyMetadata, builder.WithPredicates(running.triggers.NoteLeader(), significant, inShard(r.settings.selector), running.handler.deletion.cascades.noted(), running.triggers.NoteEdits())).
		WatchesRawSource(running.triggers.Source()).
		Named(controllerName(gvk)).
		Complete(r)
	if err != nil {
		r.running.Store(nil)
		return r.setupError(err)
	}
	if renders.LacksDigest(r.generator) {
		mgr.GetLogger().Info("a generator or a transformer has no digest, so another version of it starts no revision; give it one by manifests.WithDigest, or set the option BuildDigest",
			"reconciler", r.settings.Name)
	}
	return nil
}

// wiring returns the mistakes that were made before the setup.
func (r *Reconciler[T]) wiring() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.mistakes)
}

func (r *Reconciler[T]) setupError(err error) error {
	return fmt.Errorf("set up reconciler %s: %w", r.settings.Name, err)
}

// sharedTypes are the types that all components share: the types of the generator, and the named ones.
func sharedTypes(generator manifests.Generator, names []string) []types.SharedType {
	shared, version := renders.SharedTypes(generator), renders.Source(generator).Version
	for _, name := range names {
		if !slices.ContainsFunc(shared, func(t types.SharedType) bool { return t.Name == name }) {
			shared = append(shared, types.SharedType{Name: name, Version: version})
		}
	}
	return shared
}

// controllerName has the group, too: kinds of different groups may have one name.
func controllerName(gvk schema.GroupVersionKind) string {
	return strings.ToLower(gvk.GroupKind().String())
}

// newLocalClient returns a client with the identity of the operator. Components are
// read from the server: decisions that rest on a cache would be made twice, or against
// what was asked for meanwhile.
func newLocalClient(mgr ctrl.Manager, newClient client.NewClientFunc) (client.Client, error) {
	if newClient == nil {
		newClient = client.New
	}
	uncached, err := newClient(unthrottled(mgr.GetConfig()), client.Options{
		HTTPClient: telemetry.CountRequests(mgr.GetHTTPClient()), Scheme: mgr.GetScheme(), Mapper: mgr.GetRESTMapper(),
	})
	if err != nil {
		return nil, fmt.Errorf("make a client: %w", err)
	}
	if uncached == nil {
		return nil, errors.New("option NewClient returns nil")
	}
	return uncached, nil
}

// unthrottled leaves the rate of requests to the server's priority and fairness, unless the
// configuration sets one: the client's own default is five requests per second.
func unthrottled(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	if config.QPS == 0 && config.RateLimiter == nil {
		config.QPS = -1
	}
	return config
}

// resolveSetup resolves the options that concern the setup.
func (s *settings) resolveSetup(options ReconcilerOptions) error {
	var errs []error
	s.newClient, s.rateLimiter = options.Controller.NewClient, options.Controller.RateLimiter
	if s.rateLimiter == nil {
		s.ownLimiter = backoff.NewRateLimiter()
		s.rateLimiter = s.ownLimiter
	}
	if options.Controller.MaxConcurrentReconciles != nil {
		if s.concurrency = *options.Controller.MaxConcurrentReconciles; s.concurrency < 1 {
			errs = append(errs, fmt.Errorf("option MaxConcurrentReconciles %d: must be at least 1", s.concurrency))
		}
	}
	if options.Controller.LabelSelector != nil {
		selector, err := metav1.LabelSelectorAsSelector(options.Controller.LabelSelector)
		if err != nil {
			errs = append(errs, fmt.Errorf("option LabelSelector: %w", err))
		}
		s.selector = selector
	}
	if options.Operator.ClusterUID != nil {
		if s.clusterUID = apitypes.UID(*options.Operator.ClusterUID); s.clusterUID == "" {
			errs = append(errs, errors.New("option ClusterUID is empty"))
		}
	}
	return errors.Join(errs...)
}

// controllerOptions are the options of the controller.
func (s *settings) controllerOptions(mgr ctrl.Manager) controller.Options {
	configured := mgr.GetControllerOptions()
	options := controller.Options{RateLimiter: s.rateLimiter, MaxConcurrentReconciles: session.ConcurrencyOf(s.concurrency, configured)}
	if configured.EnableWarmup == nil {
		options.EnableWarmup = new(true) // a standby knows the components when it begins to lead
	}
	return options
}

// inShard lets events about components pass that the selector selects, or selected before: their memory is dropped.
func inShard(selector labels.Selector) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(e event.CreateEvent) bool { return selects(selector, e.Object) },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return selects(selector, e.ObjectOld) || selects(selector, e.ObjectNew)
		},
		DeleteFunc: func(e event.DeleteEvent) bool { return selects(selector, e.Object) },
	}
}

// targetScheme returns the scheme for clients of targets: what the manager knows,
// and what the options and the generator add. The manager's own scheme is left
// alone, because it may be in use already.
func targetScheme(managers *runtime.Scheme, s settings, generator manifests.Generator) (scheme *runtime.Scheme, err error) {
	defer guard.Into(&err) // a scheme panics when one kind is registered with two types
	scheme = runtime.NewScheme()
	for gvk, t := range managers.AllKnownTypes() {
		if object, ok := reflect.New(t).Interface().(runtime.Object); ok {
			scheme.AddKnownTypeWithName(gvk, object)
		}
	}
	if s.schemeBuilder != nil {
		if err := s.schemeBuilder.AddToScheme(scheme); err != nil {
			return nil, fmt.Errorf("option SchemeBuilder: %w", err)
		}
	}
	if err := renders.AddToScheme(generator, scheme); err != nil {
		return nil, fmt.Errorf("resource generator: %w", err)
	}
	return scheme, nil
}

// connect makes the handler of a running reconciler, and adds the runnables beside it to the manager.
func (r *Reconciler[T]) connect(mgr ctrl.Manager, local client.Client, queue *trigger.Queue, gvk schema.GroupVersionKind, workers int) (*handler, error) {
	scheme, err := targetScheme(mgr.GetScheme(), r.settings, r.generator)
	if err != nil {
		return nil, fmt.Errorf("scheme for the target cluster: %w", err)
	}
	self := r.settings.Operator
	self.Kind = gvk
	handler := newHandler(&steps{
		opener:   &opener{settings: r.settings, self: self, author: authorTypeOf[T](), local: local, now: r.now},
		memory:   newMemory(),
		triggers: queue,
	})
	handler.telemetry = telemetry.New(telemetry.Options{
		Controller: controllerName(gvk), Self: &handler.self, Tracer: trace.New(r.settings.tracerProvider),
		Recorder: events.NewRecorder(mgr, r.settings.Name), Now: r.now,
	})
	handler.code = newUserCode(r.hooks, mgr.GetClient(), r.settings.leaderLock)
	handler.mapper = mgr.GetRESTMapper()
	key := targets.NewDigestKey(local, targets.DigestKeySecret(r.settings.operatorNamespace, r.settings.Name))
	clusters := targets.New(mgr.GetConfig(), targets.Options{
		Name: r.settings.Name,
		Engine: reconciler.ReconcilerOptions{
			FieldOwner:              &r.settings.FieldOwner,
			AdoptionPolicy:          &r.settings.policies.Adoption,
			UpdatePolicy:            &r.settings.policies.Update,
			DeletePolicy:            &r.settings.policies.Delete,
			DriftPolicy:             &r.settings.policies.Drift,
			MissingNamespacesPolicy: &r.settings.policies.MissingNamespaces,
			ReadyWhen:               r.settings.objects.ReadyWhen,
			IgnoreFields:            r.settings.objects.IgnoreFields,
			SharedTypes:             sharedTypes(r.generator, r.settings.objects.SharedTypes),
			Scheme:                  scheme,
			TracerProvider:          r.settings.tracerProvider,
			Now:                     r.now,
		},
		Pool: target.Options{
			Cluster:    cluster.Options{Scheme: scheme},
			DialPolicy: r.settings.users.TargetDialPolicy,
			LocalUID:   r.settings.clusterUID,
			Slots:      r.settings.targetConcurrency,
			// One worker is left for the local cluster, whatever the others wait for.
			Remote: max(workers-1, 0),
		},
		OnlyNamespace: r.settings.onlyNamespace,

		DigestKey: key,
		LocalUID:  targets.NewClusterUID(local, cmp.Or(r.settings.onlyNamespace, targets.KubeSystem), r.settings.clusterUID),
		Queue:     queue,
	})
	handler.digestKey, handler.targets = key.Get, clusters
	renderer := newRenderer(r.generator, handler.steps)
	renderer.Scheme, renderer.Revisions = scheme, revisions.NewStore(revisions.Options{
		Client: local, Name: r.settings.Name, FieldOwner: r.settings.FieldOwner, Namespace: r.settings.operatorNamespace, Key: key.Get,
	})
	handler.revisions = newSource(handler.steps, renderer)
	handler.records = newRecords(handler.steps, r.inventoryThreshold)
	handler.concluder = newConcluder(handler.steps)
	if handler.watches, err = targets.NewWatches(mgr.GetConfig(), queue.RequestFull, handler.concluder.ResetDelay); err != nil {
		return nil, err
	}
	handler.concluder.Watches = handler.watches
	handler.outputs = outputs.Publisher{Self: &handler.self, Local: local, Key: key.Get, Leading: r.settings.leaderLock.leading, Watch: handler.watches.AddReference}
	handler.fleet = newFleet(handler.steps, mgr.GetCache(), queue.RequestFull)
	runs := []manager.RunnableFunc{clusters.Run, handler.watches.Run, handler.records.CleanUpOrphans}
	if !r.settings.users.DisablePreviews {
		handler.previews = newPreviews(handler.planner, mgr.Elected())
		runs = append(runs, handler.previews.run)
	}
	for _, run := range runs {
		if err := mgr.Add(run); err != nil {
			return nil, err
		}
	}
	handler.sessions, err = session.New(handler.sessionOptions())
	return handler, err
}

// newSource returns the source of the revisions of the components of a handler.
func newSource(s *steps, renderer *rendering.Renderer) *revision.Source {
	return &revision.Source{
		Self: &s.self, Renderer: renderer, DigestKey: s.digestKey, HistoryLimit: s.settings.historyLimit, AdoptReleases: s.settings.users.AdoptHelmReleases,
		Now: func() time.Time { return s.now() },
		References: func(obj identity.Component) []references.Found {
			found, _ := s.author.finder.Find(specOf(obj))
			return found
		},
		Hooks: func(ctx context.Context, obj identity.Component) ([]string, error) {
			return s.code.previewHooks(ctx, preReconcile, obj)
		},
	}
}

// newConcluder returns the concluder of a handler.
func newConcluder(s *steps) *conclude.Concluder {
	return &conclude.Concluder{
		Self: &s.self, Telemetry: s.telemetry, RequestFast: s.triggers.RequestFast, Local: s.local, Now: func() time.Time { return s.now() },
		Author: conclude.Author{
			Intervals: intervalsOf, RollsBack: s.settings.rollsBack, ReadyWhen: s.settings.objects.ReadyWhen, MinReady: s.settings.minReady, Limiter: s.settings.ownLimiter,
			Access: func(obj identity.Component) (target.Access, error) { return accessOf(obj, s.settings) },
			Suspension: func(obj identity.Component) (string, time.Duration) {
				own, _ := s.suspensionOf(obj)
				return own.String(), own.endsIn(s.now())
			},
		},
	}
}

// newRecords returns the keeper of inventories for a handler that is complete without it.
func newRecords(s *steps, threshold int) *record.Keeper {
	settings, sealer := s.settings, v1alpha1.InventoryOperator{Namespace: s.settings.operatorNamespace}
	if settings.leaderLock != nil {
		sealer.Lease = settings.leaderLock.Describe()
	}
	return &record.Keeper{
		Self: &s.self, Sealer: sealer, DigestKey: s.digestKey, Revisions: s.revisions.Renderer.Revisions,
		Store: inventory.NewStore(inventory.Options{
			Client: s.local, Name: settings.Name, FieldOwner: settings.FieldOwner,
			Namespace: settings.operatorNamespace, Only: settings.onlyNamespace, Threshold: threshold,
		}),
		Local: s.local, Mapper: s.mapper, Telemetry: s.telemetry, RequestFast: s.triggers.RequestFast,
		Leading: settings.leaderLock.leading, MayCreate: func() error { return settings.leaderLock.leadingFor(creating) },
		Selected: func(obj identity.Component) error {
			if !selects(settings.selector, obj) {
				return errNotSelected
			}
			return nil
		},
		Configured: func(obj identity.Component) (string, []reconciler.TypeInfo, error) {
			resolved, _ := resolveConfig(obj, settings) // other mistakes do not matter here
			managedTypes, err := managedTypesOf(obj)
			return resolved.Namespace, managedTypes, err
		},
	}
}

func (h *handler) sessionOptions() session.Options[Component] {
	options := session.Options[Component]{
		Elsewhere: func(obj Component) string { return h.self.Claim(obj, obj.GetStatus().Reconciler) },
		Former:    func(obj Component) string { return h.self.FormerFinalizer(obj) },

		Name:             h.settings.Name,
		ManagementPolicy: h.settings.management,

		Client:     h.local,
		Reader:     &reader{Reader: h.local, kind: h.self.Kind, selector: h.settings.selector},
		Finalizer:  h.settings.Finalizer,
		FieldOwner: h.settings.FieldOwner,
		Recorder:   h.telemetry.Recorder,
		New:        h.author.new,
		Conditions: conditionsOf,
		Leading:    h.settings.leaderLock.leading,

		ObservedGenerationAlways: true,
	}
	if h.settings.users.NamespaceManagementPolicies {
		options.Namespaces = h.local
	}
	return options
}

func conditionsOf(obj Component) conditions.Setter {
	return conditions.For(obj, &obj.GetStatus().Conditions)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/retry"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	logf "sigs.k8s.io/controller-runtime/pkg/log"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/audit"
	"github.com/corbel-run/corbel/test/env"
)

func TestMain(m *testing.M) {
	logf.SetLogger(logf.Log.WithSink(logf.NullLogSink{}))
	code := env.Main(m, env.Options{AuditLog: true, AuditBodies: true})
	if err := stopOtherCluster(); err != nil {
		fmt.Fprintf(os.Stderr, "stop the second cluster: %v\n", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

const (
	operatorName = "test.corbel.run"
	patience     = 30 * time.Second
)

// bed is a namespace with one component in it and the operator of its type. The
// manager does not run: the test runs every single reconcile.
type bed struct {
	*testing.T
	env          *env.Environment
	client       client.Client // of the user
	manager      ctrl.Manager  // of the operator
	reconciler   *component.Reconciler[*widget.Widget]
	namespace    string
	user         string // the operator's name in the audit log
	firstEvent   int    // audit events before this belong to other tests
	since        int    // audit events before this are not counted
	forward      time.Duration
	auditOptions audit.Options
}

var installed sync.Once

// installWidgets installs the definition of the component, once.
func installWidgets(t *testing.T, e *env.Environment) {
	t.Helper()
	installed.Do(func() {
		if _, err := envtest.InstallCRDs(e.Config(), envtest.CRDInstallOptions{Paths: []string{"testdata/crds"}}); err != nil {
			t.Fatal(err)
		}
	})
}

// newBed sets up the operator. Configure may register hooks and change the clock.
func newBed(t *testing.T, generator manifests.Generator, options component.ReconcilerOptions, configure ...func(*bed)) *bed {
	t.Helper()
	e := env.Shared(t)
	installWidgets(t, e)
	b := &bed{T: t, env: e, user: "operator-" + strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-"))}
	b.client = must(client.New(e.Config(), client.Options{Scheme: newScheme(t)}))(t)
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"}}
	b.check(b.client.Create(t.Context(), namespace))
	b.namespace = namespace.Name
	b.firstEvent = len(b.events())
	b.restartWith(generator, options, configure...)
	b.auditOptions = audit.Options{
		Name: operatorName, Component: schema.GroupResource{Group: "test.corbel.run", Resource: "widgets"}, User: b.user,
		Finalizer: operatorName,
	}
	if options.Finalizer != nil {
		b.auditOptions.Finalizer = *options.Finalizer
	}
	b.Cleanup(b.discard)
	b.Cleanup(b.audit)
	b.Cleanup(b.checkConditions)
	return b
}

// newReady sets up the operator and a component that is ready.
func newReady(t *testing.T, generator manifests.Generator, spec widget.Spec, options component.ReconcilerOptions, configure ...func(*bed)) *bed {
	t.Helper()
	b := newBed(t, generator, options, configure...)
	b.create(spec)
	b.until(v1alpha1.StateReady)
	return b
}

func newScheme(t *testing.T) *runtime.Scheme {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, widget.AddToScheme} {
		check(t, add(scheme))
	}
	return scheme
}

// newManager makes a manager that sends all requests through a wrapper; nil is none.
func newManager(t *testing.T, e *env.Environment, user string, wrap func(http.RoundTripper) http.RoundTripper) ctrl.Manager {
	t.Helper()
	restConfig := must(e.ConfigFor(user, "system:masters"))(t)
	if wrap != nil {
		restConfig.Wrap(wrap)
	}
	return must(ctrl.NewManager(restConfig, ctrl.Options{
		Scheme:  newScheme(t),
		Metrics: metricsserver.Options{BindAddress: "0"},
		// Every test has a controller for the same kind.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}))(t)
}

// confined makes a manager that watches the namespace of the test only.
func (b *bed) confined(restConfig *rest.Config, scheme *runtime.Scheme) ctrl.Manager {
	b.Helper()
	return must(ctrl.NewManager(restConfig, ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	}))(b)
}

func must[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		check(t, err)
		return value
	}
}

func (b *bed) check(err error) {
	b.Helper()
	check(b, err)
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// restart replaces the operator by another process with the same chart.
func (b *bed) restart(generator manifests.Generator) {
	b.Helper()
	b.restartWith(generator, component.ReconcilerOptions{})
}

func (b *bed) restartWith(generator manifests.Generator, options component.ReconcilerOptions, configure ...func(*bed)) {
	b.Helper()
	b.manager = newManager(b.T, b.env, b.user, nil)
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, generator, options)
	component.SetClock(b.reconciler, func() time.Time { return time.Now().Add(b.forward) })
	for _, f := range configure {
		f(b)
	}
	b.check(b.reconciler.SetupWithManager(b.manager))
}

// via lets the operator send all requests through a wrapper.
func via(wrap func(http.RoundTripper) http.RoundTripper) func(*bed) {
	return func(b *bed) { b.manager = newManager(b.T, b.env, b.user, wrap) }
}

// create makes the component of the test.
func (b *bed) create(spec widget.Spec) *widget.Widget {
	b.Helper()
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main"}, Spec: spec}
	b.check(b.client.Create(b.Context(), w))
	return w
}

func (b *bed) get() *widget.Widget {
	b.Helper()
	w := &widget.Widget{}
	b.check(b.client.Get(b.Context(), b.key("main"), w))
	return w
}

// raw returns the component as the server has it.
func (b *bed) raw() *unstructured.Unstructured {
	b.Helper()
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	b.check(b.client.Get(b.Context(), b.key("main"), object))
	return object
}

func (b *bed) key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: b.namespace, Name: name}
}

// update changes the component as its user, who tries again if the operator was faster.
func (b *bed) update(change func(*widget.Widget)) {
	b.Helper()
	b.check(retry.RetryOnConflict(retry.DefaultRetry, func() error {
		w := b.get()
		change(w)
		return b.client.Update(b.Context(), w)
	}))
}

// annotate sets annotations of the component; an empty value removes one.
func (b *bed) annotate(annotations map[string]string) {
	b.Helper()
	b.update(func(w *widget.Widget) {
		if w.Annotations == nil {
			w.Annotations = map[string]string{}
		}
		for key, value := range annotations {
			if w.Annotations[key] = value; value == "" {
				delete(w.Annotations, key)
			}
		}
	})
}

// reconcile runs one reconcile and returns the component afterwards.
func (b *bed) reconcile() (*widget.Widget, reconcile.Result, error) {
	b.Helper()
	result, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key("main")})
	w := b.get()
	// The first status is written with the record, so there is none if the component changes before that.
	if w.Status.State != "" {
		conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
	}
	return w, result, err
}

// until runs reconciles, as far apart as they ask for, until the state is reached.
func (b *bed) until(state v1alpha1.State) *widget.Widget {
	b.Helper()
	for deadline := time.Now().Add(patience); ; {
		w, result, err := b.reconcile()
		got, reason, message := w.Status.GetState()
		if got == state {
			return w
		}
		if time.Now().After(deadline) {
			b.Fatalf("the state is %s, %s: %s; the last reconcile returned %+v and %v", got, reason, message, result, err)
		}
		time.Sleep(min(result.RequeueAfter, time.Second))
	}
}

// remove deletes the component of the test, and reconciles until it is gone.
func (b *bed) remove() {
	b.Helper()
	b.check(b.client.Delete(b.Context(), b.get()))
	b.untilGone()
}

// untilGone reconciles until the component of the test does not exist.
func (b *bed) untilGone() {
	b.Helper()
	b.untilGoneOf("main")
}

func (b *bed) untilGoneOf(name string) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; {
		result, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key(name)})
		w := &widget.Widget{}
		if getErr := b.client.Get(b.Context(), b.key(name), w); apierrors.IsNotFound(getErr) {
			return
		}
		if time.Now().After(deadline) {
			_, reason, message := w.Status.GetState()
			b.Fatalf("the component is still there: %s: %s; the last reconcile returned %+v and %v", reason, message, result, err)
		}
		time.Sleep(min(result.RequeueAfter, time.Second))
	}
}

// resetRequests drops the requests up to now.
func (b *bed) resetRequests() { b.since = len(b.events()) }

func (b *bed) events() []env.AuditEvent {
	b.Helper()
	return must(b.env.AuditEvents(b.Context()))(b)
}

// writes returns what the operator wrote since the last resetRequests, without events and reviews of rights, as
// "verb resource/subresource name".
func (b *bed) writes() []string {
	b.Helper()
	var writes []string
	for _, e := range b.events()[b.since:] {
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		if e.User != b.user || reads || isDryRun(e) || e.Resource == "events" || e.Code >= 400 {
			continue
		}
		resource := e.Resource
		if e.Subresource != "" {
			resource += "/" + e.Subresource
		}
		name, _, isHistory := strings.Cut(e.Name, "-revisions-")
		if isHistory {
			name += "-revisions" // without the hash
		}
		writes = append(writes, fmt.Sprintf("%s %s %s", e.Verb, resource, name))
	}
	return writes
}

// wantNoWrites checks that the operator wrote nothing since the last resetRequests.
func (b *bed) wantNoWrites(when string) {
	b.Helper()
	if writes := b.writes(); len(writes) > 0 {
		b.Errorf("%s: %v", when, writes)
	}
}

// without returns the writes, sorted, without those that contain one of the texts.
func without(writes []string, texts ...string) []string {
	return slices.Sorted(slices.Values(slices.DeleteFunc(writes, func(write string) bool {
		return slices.ContainsFunc(texts, func(text string) bool { return strings.Contains(write, text) })
	})))
}

// isDryRun reports whether a request changes nothing.
func isDryRun(e env.AuditEvent) bool {
	return strings.Contains(e.URI, "dryRun=All") || strings.Contains(string(e.Sent), `"dryRun":["All"]`)
}

// configMaps is a generator that makes one config map of each value.
func configMaps(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
	values, _ := parameters.ToUnstructured()["values"].(map[string]any)
	var objects []client.Object
	for name, value := range values {
		objects = append(objects, &corev1.ConfigMap{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
			ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"value": fmt.Sprint(value)},
		})
	}
	return objects, nil
}

// configMap reports whether there is a config map of the name, and its value.
func (b *bed) configMap(name string) (value string, exists bool) {
	b.Helper()
	configMap := &corev1.ConfigMap{}
	err := b.client.Get(b.Context(), b.key(name), configMap)
	if apierrors.IsNotFound(err) {
		return "", false
	}
	b.check(err)
	return configMap.Data["value"], true
}

// wantNone checks that there are no config maps of the names.
func (b *bed) wantNone(names ...string) {
	b.Helper()
	for _, name := range names {
		if _, exists := b.configMap(name); exists {
			b.Errorf("config map %s is there", name)
		}
	}
}

// checkConditions checks the conditions of all components at the end, if there was a reconcile over them.
func (b *bed) checkConditions() {
	list := &widget.WidgetList{}
	b.check(b.client.List(context.Background(), list, client.InNamespace(b.namespace)))
	for i := range list.Items {
		if w := &list.Items[i]; len(w.Status.Conditions) > 0 {
			conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
		}
	}
}

// discard takes the components away, so that no manager of another test goes on with them.
func (b *bed) discard() {
	list := &widget.WidgetList{}
	b.check(b.client.List(context.Background(), list, client.InNamespace(b.namespace)))
	for _, w := range list.Items {
		before := w.DeepCopy()
		w.Finalizers = nil
		b.check(client.IgnoreNotFound(b.client.Patch(context.Background(), &w, client.MergeFrom(before))))
		b.check(client.IgnoreNotFound(b.client.Delete(context.Background(), &w)))
	}
}

// audit checks every write that the operator has made.
func (b *bed) audit() {
	events, err := b.env.AuditEvents(context.Background())
	if err != nil {
		b.Error(err)
		return
	}
	violations, _ := audit.Violations(events[b.firstEvent:], b.auditOptions)
	for _, v := range violations {
		b.Errorf("audit: %s", v)
	}
}

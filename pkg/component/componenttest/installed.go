// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package componenttest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
)

// Installed is a component in a namespace of its own, with an operator that runs.
type Installed[T component.Component] struct {
	// Client reaches the cluster as its administrator.
	Client client.Client
	// Namespace is the namespace of the component and, unless its spec sets another one, of its
	// dependents.
	Namespace string
	// Component is the component as it was last read.
	Component T

	operator  Operator[T]
	kind      schema.GroupVersionKind
	resource  schema.GroupVersionResource // of the component
	types     discovery.ServerResourcesInterface
	ownerID   string
	before    map[object]bool // the objects in the namespace before the component
	record    *record
	process   *process
	network   *connection
	seesAll   bool         // the operator sees all namespaces
	ofLease   string       // the namespace of the lease of the operator; empty: it has none
	shared    bool         // the namespace is not of this case only
	interrupt func() error // an error ends each wait; nil for none
}

// Install starts the operator, creates a copy of the component in a new namespace, and waits
// until it is Ready. The end of the test deletes the component, its dependents and the
// namespace, and stops the operator.
func (o Operator[T]) Install(t testing.TB, obj T) *Installed[T] {
	t.Helper()
	i := o.prepare(t, obj)
	t.Cleanup(func() { i.end(t) })
	i.start(t, &connection{})
	i.create(t)
	i.awaitReady(t, nil)
	return i
}

// Edit changes the component and waits until it is Ready again.
func (i *Installed[T]) Edit(t testing.TB, edit func(T)) {
	t.Helper()
	i.change(t, edit)
	i.awaitReady(t, nil)
}

// Delete deletes the component and waits until it is gone. It fails the test if anything is left
// that the field Retained does not name.
func (i *Installed[T]) Delete(t testing.TB) {
	t.Helper()
	i.network.faults.nextStage()
	if err := i.Client.Delete(t.Context(), i.Component); err != nil {
		t.Fatalf("delete the component: %v", err)
	}
	i.awaitGone(t)
}

// prepare makes the namespace with the prerequisites. The component does not exist yet.
func (o Operator[T]) prepare(t testing.TB, obj T) *Installed[T] {
	t.Helper()
	return o.prepareWithin(t, obj, "")
}

// prepareWithin is prepare in a namespace that exists; if it is empty, a new one is made.
func (o Operator[T]) prepareWithin(t testing.TB, obj T, within string) *Installed[T] {
	t.Helper()
	o.check(t)
	i := &Installed[T]{operator: o, Component: obj.DeepCopyObject().(T), record: &record{}}
	fail := func(what string, err error) {
		if err != nil {
			t.Helper()
			t.Fatalf("%s: %v", what, err)
		}
	}
	var err error
	i.Client, err = client.New(o.config(), client.Options{Scheme: o.Scheme})
	fail("make a client", err)
	i.types, err = discovery.NewDiscoveryClientForConfig(o.config())
	fail("make a client of the discovery", err)
	i.kind, err = apiutil.GVKForObject(obj, o.Scheme)
	fail("find the type of the component", err)
	i.poll(t, "the type of the component to be served", func(context.Context) error { // a new one is listed a moment later
		mapping, err := i.Client.RESTMapper().RESTMapping(i.kind.GroupKind(), i.kind.Version)
		if err == nil {
			i.resource = mapping.Resource
		}
		return err
	})

	if i.shared = within != ""; i.shared {
		i.Namespace = within
	} else {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "componenttest-"}}
		fail("create a namespace", i.Client.Create(t.Context(), namespace))
		i.Namespace = namespace.Name
	}
	if i.isNamespaced() {
		i.Component.SetNamespace(i.Namespace)
	}
	for _, given := range o.Prerequisites {
		given := given.DeepCopyObject().(client.Object)
		i.poll(t, "the type of the prerequisite "+given.GetName()+" to be served", func(context.Context) error { // an earlier prerequisite may define the type
			namespaced, err := i.Client.IsObjectNamespaced(given)
			if namespaced && given.GetNamespace() == "" {
				given.SetNamespace(i.Namespace)
			}
			return err
		})
		if binding, ok := given.(*rbacv1.RoleBinding); ok {
			for n := range binding.Subjects {
				if subject := &binding.Subjects[n]; subject.Kind == rbacv1.ServiceAccountKind && subject.Namespace == "" {
					subject.Namespace = i.Namespace
				}
			}
		}
		withStatus := given.DeepCopyObject().(client.Object)
		fail("create the prerequisite "+given.GetName(), client.IgnoreAlreadyExists(i.Client.Create(t.Context(), given)))
		if content, ok := withStatus.(*unstructured.Unstructured); ok && content.Object["status"] != nil {
			fail("set the status of the prerequisite "+given.GetName(), client.IgnoreNotFound(i.Client.Status().Patch(t.Context(), content, client.Merge)))
		}
	}
	i.before = map[object]bool{}
	i.poll(t, "the content of the namespace to be listed", func(ctx context.Context) error {
		found, err := i.inNamespace(ctx)
		for _, o := range found {
			i.before[o] = true
		}
		return err
	})
	return i
}

// isNamespaced reports whether the component lives in a namespace.
func (i *Installed[T]) isNamespaced() bool {
	namespaced, err := i.Client.IsObjectNamespaced(i.Component)
	return err != nil || namespaced
}

// start starts the operator with a connection to the server.
func (i *Installed[T]) start(t testing.TB, network *connection) {
	t.Helper()
	network.record = i.record
	i.network = network
	namespace := i.Namespace
	if i.seesAll || !i.isNamespaced() {
		namespace = ""
	}
	i.process = i.operator.start(t, namespace, i.ofLease, network.wrap)
}

// create creates the component.
func (i *Installed[T]) create(t testing.TB) {
	t.Helper()
	i.network.arm()
	if err := i.Client.Create(t.Context(), i.Component); err != nil {
		t.Fatalf("create the component: %v", err)
	}
}

// change changes the component. If its generation does not change, it asks for a reconcile,
// so that the status shows when the change was seen.
func (i *Installed[T]) change(t testing.TB, edit func(T)) {
	t.Helper()
	i.network.faults.nextStage()
	update := func(change func()) {
		t.Helper()
		i.poll(t, "the update of the component", func(ctx context.Context) error {
			if err := i.read(ctx); err != nil {
				return err
			}
			change()
			return i.Client.Update(ctx, i.Component)
		})
	}
	generation := int64(0)
	update(func() { generation = i.Component.GetGeneration(); edit(i.Component) })
	if i.Component.GetGeneration() == generation {
		update(i.requestReconcile)
	}
}

// reconcileAt asks for a reconcile, and status.lastHandledReconcileAt answers it.
const reconcileAt = "reconcile.fluxcd.io/requestedAt"

// requestReconcile makes the component ask for a reconcile.
func (i *Installed[T]) requestReconcile() {
	i.Component.SetAnnotations(labels.Merge(i.Component.GetAnnotations(), map[string]string{reconcileAt: time.Now().Format(time.RFC3339Nano)}))
}

// read reads the component.
func (i *Installed[T]) read(ctx context.Context) error {
	err := i.Client.Get(ctx, client.ObjectKeyFromObject(i.Component), i.Component)
	if status := i.Component.GetStatus(); err == nil && status.OwnerID != "" {
		i.ownerID = status.OwnerID
	}
	return err
}

// awaitReady waits until the component is Ready, and its dependents equal want, if it is not nil.
// It returns the dependents.
func (i *Installed[T]) awaitReady(t testing.TB, want snapshot) (got snapshot) {
	t.Helper()
	i.await(t, "the component to be Ready", func(ctx context.Context) error {
		if err := i.read(ctx); err != nil {
			return err
		}
		if err := i.notReady(); err != nil {
			return err
		}
		var err error
		if got, err = i.dependents(ctx); err != nil {
			return err
		}
		return want.differs(got)
	})
	conditionstest.Check(t, conditions.For(i.Component, &i.Component.GetStatus().Conditions))
	return got
}

// notReady returns an error if the component, as it was read, is not Ready.
func (i *Installed[T]) notReady() error {
	status := i.Component.GetStatus()
	requested := i.Component.GetAnnotations()[reconcileAt]
	handled := requested == "" || status.LastHandledReconcileAt == requested
	if status.IsReady() && status.ObservedGeneration == i.Component.GetGeneration() && handled {
		return nil
	}
	return fmt.Errorf("%s, generation %d, observed %d", describe(status), i.Component.GetGeneration(), status.ObservedGeneration)
}

func describe(status *component.Status) string {
	state, reason, message := status.GetState()
	if state == "" {
		return "it has no state yet"
	}
	return fmt.Sprintf("it is %s (%s: %s)", state, reason, message)
}

// awaitGone waits until neither the component nor anything of it is left.
func (i *Installed[T]) awaitGone(t testing.TB) {
	t.Helper()
	i.await(t, "the component to be gone, and nothing of it to be left", func(ctx context.Context) error {
		if err := i.read(ctx); err == nil {
			return errors.New(describe(i.Component.GetStatus()))
		} else if !apierrors.IsNotFound(err) {
			return err
		}
		left, err := i.leftovers(ctx)
		if err != nil {
			return err
		}
		names := make([]string, 0, len(left))
		for _, o := range left {
			names = append(names, i.nameOf(o))
		}
		if len(names) > 0 {
			return fmt.Errorf("the component is gone, and there is still: %s", strings.Join(names, ", "))
		}
		return nil
	})
}

// await polls a check; after a crash of the operator it starts another one and goes on.
func (i *Installed[T]) await(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	crashed := false
	i.poll(t, what, func(ctx context.Context) error {
		if crashed = i.network.hasCrashed(); crashed {
			return nil
		}
		return check(ctx)
	})
	if !crashed {
		return
	}
	i.process.stop(t)
	i.start(t, &connection{})
	i.poll(t, what, check)
}

// poll repeats a check until it succeeds, and fails the test with its last error when the
// time is up.
func (i *Installed[T]) poll(t testing.TB, what string, check func(ctx context.Context) error) {
	t.Helper()
	timeout := i.operator.Timeout
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	var last, broken error
	err := wait.PollUntilContextTimeout(t.Context(), pollInterval, timeout, true, func(ctx context.Context) (bool, error) {
		err := check(ctx)
		if err == nil {
			return true, nil
		}
		if ctx.Err() == nil || last == nil {
			last = err
		}
		broken = i.broken()
		return false, broken
	})
	switch {
	case broken != nil:
		t.Fatalf("while waiting for %s: %v; before: %v", what, broken, last)
	case err != nil:
		t.Fatalf("waited %s for %s: %v", timeout, what, last)
	}
}

// broken returns an error if it is useless to wait.
func (i *Installed[T]) broken() error {
	if i.process != nil && !i.network.hasCrashed() {
		if err := i.process.failure(); err != nil {
			return err
		}
	}
	if i.interrupt != nil {
		return i.interrupt()
	}
	return nil
}

// end stops the operator and removes the remains, also after a failure.
func (i *Installed[T]) end(t testing.TB) {
	t.Helper()
	if i.process != nil {
		i.process.stop(t)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	remove := func(obj client.Object) {
		err := i.Client.Delete(ctx, obj, client.PropagationPolicy(metav1.DeletePropagationBackground))
		if err == nil {
			err = i.Client.Patch(ctx, obj, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`)))
		}
		if client.IgnoreNotFound(err) != nil && !isUnserved(err) {
			t.Errorf("remove %s %s: %v", obj.GetObjectKind().GroupVersionKind().Kind, obj.GetName(), err)
		}
	}
	remove(i.Component)
	left, err := i.leftovers(ctx)
	if err != nil {
		t.Errorf("list what is left: %v", err)
	}
	for _, o := range left {
		remove(o.bare())
	}
	if i.shared {
		return
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: i.Namespace}}
	if err := client.IgnoreNotFound(i.Client.Delete(ctx, namespace)); err != nil {
		t.Errorf("remove the namespace %s: %v", i.Namespace, err)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/revisions"
	"github.com/corbel-run/corbel/internal/target"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/pkg/types"
)

func deletedWidget(inventory v1alpha1.Inventory, finalizers ...string) *widget {
	obj := newWidget()
	obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
	obj.Finalizers = append([]string{"test.corbel.run"}, finalizers...)
	obj.Status.Inventory = inventory
	return obj
}

func TestDelete(t *testing.T) {
	blocker := report.Blocker{Dependent: "CustomResourceDefinition foos.example.com", Message: "2 instances exist"}
	waiting := []report.Wait{waitFor("/Namespace old", "Terminating", "is being deleted")}
	refused := &reconciler.UnidentifiedTargetError{Server: "https://there.example.com", Err: errors.New("Unauthorized")}
	kubeconfig := func(w *widget) { w.Spec.KubeConfig = &KubeConfigSpec{} }
	tests := []struct {
		name       string
		engine     fakeEngine
		inventory  v1alpha1.Inventory
		finalizers []string
		change     func(*widget)
		done       bool
		touched    bool
		state      v1alpha1.State
		reason     string
		message    string
	}{
		{name: "everything goes", inventory: someInventory, done: true, touched: true},
		{name: "foreign instances block before anything is touched", engine: fakeEngine{blockers: []report.Blocker{blocker}}, inventory: someInventory,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "CustomResourceDefinition foos.example.com: 2 instances exist"},
		{name: "foreign finalizers block", inventory: someInventory, finalizers: []string{"x.example.com/y", "z.example.com/y"},
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "Widget shop/main: has the finalizer x.example.com/y, z.example.com/y, which is not ours"},
		{name: "finalizers of the server are not foreign", inventory: someInventory, finalizers: []string{"foregroundDeletion"}, done: true, touched: true},
		{name: "it takes time", engine: fakeEngine{outcome: reconciler.Outcome{Waiting: waiting, Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "Namespace old: is being deleted"},
		{name: "it fails", engine: fakeEngine{err: errors.New("delete ConfigMap shop/a: no"), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonError, message: "delete ConfigMap shop/a: no"},
		{name: "a type is going", engine: fakeEngine{blockersErr: fmt.Errorf("look for foreign instances: %w", &cluster.PendingTypesError{Group: "example.com", Version: "v1"})}, inventory: someInventory,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "look for foreign instances: the server lists example.com/v1, but does not know its types yet"},
		{name: "types are going, says the engine", engine: fakeEngine{err: errors.Join(&cluster.PendingTypesError{Group: "a", Version: "v1"}, &cluster.PendingTypesError{Group: "b", Version: "v1"}), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionProcessing, message: "the server lists a/v1, but does not know its types yet; the server lists b/v1, but does not know its types yet"},
		{name: "a type is going, and something is wrong", engine: fakeEngine{err: errors.Join(&cluster.PendingTypesError{Group: "a", Version: "v1"}, errors.New("no")), outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonError, message: "the server lists a/v1, but does not know its types yet; no"},
		{name: "it is forbidden", engine: fakeEngine{err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}, outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonForbidden, message: `ConfigMap shop/a: no; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it waits, because something is left", inventory: someInventory, change: kubeconfig,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: `Widget shop/main: spec.kubeConfig.secretRef: the name of the Secret is missing; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it goes, because nothing is left", change: kubeconfig, done: true},
		{name: "a target that refuses it holds nothing that was never written there", engine: fakeEngine{err: refused}, done: true, touched: true},
		{name: "a target that refuses it is named, because something is left", engine: fakeEngine{err: refused, outcome: reconciler.Outcome{Inventory: someInventory}}, inventory: someInventory, touched: true,
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: `Widget shop/main: the cluster at https://there.example.com cannot be identified: Unauthorized; ` +
				`to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`},
		{name: "without its target it still minds finalizers", change: kubeconfig, finalizers: []string{"x.example.com/y"},
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonDeletionBlocked, message: "Widget shop/main: has the finalizer x.example.com/y, which is not ours"},
		{name: "mistakes that do not matter for a deletion", inventory: someInventory, done: true, touched: true,
			change: func(w *widget) { w.Spec.UpdatePolicy, w.Spec.Namespace = "Maybe", "not.legal" }},
		{name: "mistakes that do", inventory: someInventory, change: func(w *widget) { w.Spec.AdditionalManagedTypes = []v1alpha1.TypeInfo{{Group: "?", Kind: "Foo"}} },
			state: v1alpha1.StateDeleting, reason: vocabulary.ReasonSpecInvalid, message: `Widget shop/main: additional managed type 1: group "?": must be the name of a group, "*", or "*." and a suffix`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := test.engine
			h, _ := testHandler(t, &engine)
			obj := deletedWidget(test.inventory, test.finalizers...)
			if test.change != nil {
				test.change(obj)
			}
			var hooks []string
			for _, point := range []hookPoint{preDelete, postDelete} {
				h.code.hooks[point] = hooksOf(func(context.Context, client.Client, *widget) error {
					hooks = append(hooks, string(point))
					return nil
				})
			}
			if test.done {
				if res, err := h.deletion.delete(t.Context(), obj, noCommit); res != result.Success || err != nil {
					t.Errorf("result %v, error %v", res, err)
				}
				if len(hooks) != 2 {
					t.Errorf("hooks %v", hooks)
				}
			} else {
				reconcileOnce(t, h, obj)
				if state, reason, message := obj.GetStatus().GetState(); state != test.state || reason != test.reason || message != test.message {
					t.Errorf("%s, %s: %s", state, reason, message)
				}
				if len(hooks) > 1 {
					t.Errorf("hooks %v", hooks)
				}
			}
			if touched := len(engine.deleted) > 0; touched != test.touched {
				t.Errorf("the engine deleted: %v", touched)
			}
		})
	}
}

func TestADeletionThatIsForbiddenLikeTheApplyBeforeItIsAnEvent(t *testing.T) {
	engine := &fakeEngine{err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: strings.Repeat("no", 1000)}, outcome: reconciler.Outcome{Inventory: someInventory}}
	h, log := testHandler(t, engine)
	obj := deletedWidget(someInventory)
	deleted := obj.DeletionTimestamp
	obj.DeletionTimestamp = nil
	reconcileOnce(t, h, obj)
	obj.DeletionTimestamp, log.lines = deleted, nil
	for range 2 {
		reconcileOnce(t, h, obj)
	}
	const hint = `to give up the 1 object that may be left there, set the annotation test.corbel.run/abandon to "true"`
	if len(log.lines) != 1 || !strings.HasPrefix(log.lines[0], "Warning|Forbidden|Delete|ConfigMap shop/a: no") || !strings.HasSuffix(log.lines[0], hint) {
		t.Errorf("events: %q", log.lines)
	}
	if _, _, message := obj.GetStatus().GetState(); !strings.HasSuffix(message, hint) || len(message) > 1024 {
		t.Errorf("%d bytes: %s", len(message), message)
	}
}

// A chart of many objects on a server that refuses requests now and then fails often in a row, each time for another object.
func TestProgressShortensTheDelayAfterAnError(t *testing.T) {
	for name, reconcile := range map[string]func(*testing.T, *handler, *widget){
		"apply": func(t *testing.T, h *handler, obj *widget) { reconcileOnce(t, h, obj) },
		"delete": func(t *testing.T, h *handler, obj *widget) {
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
			reconcileOnce(t, h, obj)
		},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &fakeEngine{err: errors.New("create ConfigMap shop/a: no"), outcome: reconciler.Outcome{Inventory: someInventory, Total: 3, Settled: 1}}
			h, _ := testHandler(t, engine)
			h.concluder.Author.Limiter = backoff.NewRateLimiter()
			obj := newWidget()
			obj.Finalizers, obj.Status.Inventory = []string{"test.corbel.run"}, someInventory
			failures := func() int {
				reconcile(t, h, obj)
				request := ctrl.Request{NamespacedName: client.ObjectKeyFromObject(obj)}
				h.concluder.Author.Limiter.When(request)
				return h.concluder.Author.Limiter.NumRequeues(request)
			}
			for n := range 10 {
				if got := failures(); got != n+1 {
					t.Fatalf("%d failures count as %d", n+1, got)
				}
			}
			engine.outcome.Steps = map[string]int{"replace": 5} // in vain: no more objects are done
			if got := failures(); got != 11 {
				t.Errorf("after writes in vain %d failures count, want 11", got)
			}
			engine.outcome.Settled = 2
			if got := failures(); got != 5 {
				t.Errorf("after progress %d failures count, want 5", got)
			}
		})
	}
}

// TestTheNamespaceOfATenantCanBeDeleted: the namespace controller has removed the rights of the account, and perhaps the account, before
// the component is gone.
func TestTheNamespaceOfATenantCanBeDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		elsewhere, account, stays, gone bool
		released                        bool
		event                           string
	}{
		"all in it":                       {released: true},
		"all in it, the account is there": {account: true, released: true},
		"all in it, and it is gone":       {gone: true, released: true},
		"something elsewhere": {elsewhere: true, released: true, event: "Warning|IdentityGone|Delete|Widget shop/main: orphaned 1 object: ConfigMap far/b; " +
			"ServiceAccount shop/deployer, which is impersonated, does not exist, and its namespace is being deleted"},
		"something elsewhere, the account is there":   {elsewhere: true, account: true},
		"the namespace is not deleted":                {stays: true},
		"the namespace is not deleted, and elsewhere": {elsewhere: true, stays: true},
	} {
		t.Run(name, func(t *testing.T) {
			engine := &fakeEngine{err: &reconciler.ForbiddenError{Object: "ConfigMap shop/a", Message: "no"}}
			h, log := testHandler(t, engine, ReconcilerOptions{DefaultServiceAccount: new("deployer")})
			home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
			if !test.stays {
				home.Finalizers, home.DeletionTimestamp = []string{"kubernetes"}, new(metav1.Now())
			}
			objects := []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "far"}}}
			if !test.gone {
				objects = append(objects, home)
			}
			if test.account {
				objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "deployer"}})
			}
			h.local = fake.NewFakeClient(objects...)
			inventory := v1alpha1.Inventory{Format: 1, Items: []v1alpha1.InventoryItem{{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: "a"}}}
			if test.elsewhere {
				inventory.Items = append(inventory.Items, v1alpha1.InventoryItem{Kind: "ConfigMap", Version: "v1", Namespace: "far", Name: "b"})
			}
			engine.outcome.Inventory = inventory
			obj := deletedWidget(inventory)
			res, err := h.deletion.delete(t.Context(), obj, noCommit)
			if (res == result.Success) != test.released || (err == nil) != test.released || isEmpty(obj) != test.released || err != nil && !verdict.IsForbidden(err) {
				t.Errorf("result %v, error %v, %d objects on record", res, err, obj.Status.Inventory.Count())
			}
			if events := strings.Join(log.lines, "\n"); events != test.event {
				t.Errorf("events %q, want %q", events, test.event)
			}
			if about, _ := log.about.(*metav1.PartialObjectMetadata); test.event != "" && (about == nil || about.Kind != "Namespace" || about.Name != "shop") {
				t.Errorf("the event is about %v", log.about) // none can be made in the namespace
			}
		})
	}
}

func TestADeletionRendersOnlyIfSomethingRunsBeforeOrAfterIt(t *testing.T) {
	const skip = "test.corbel.run/skip-delete-hooks"
	withHooks := someInventory
	withHooks.DeleteHooks = true
	broken := errors.New("value image is required")
	tests := []struct {
		name       string
		inventory  v1alpha1.Inventory
		annotation string
		err        error // of the generator
		rendered   int
		skipped    bool
		state      v1alpha1.State
		says       string
	}{
		{name: "nothing does", inventory: someInventory, err: broken},
		{name: "something does", inventory: withHooks, rendered: 1},
		{name: "it cannot be rendered", inventory: withHooks, err: broken, rendered: 1,
			state: v1alpha1.StateDeletionPending, says: `render what runs before and after the deletion: generator: value image is required; to delete without that, set the annotation ` + skip + `: "true"`},
		{name: "it is skipped", inventory: withHooks, annotation: "true", err: broken, skipped: true},
		{name: "it is not skipped", inventory: withHooks, annotation: "false", rendered: 1},
		{name: "unknown value", inventory: withHooks, annotation: "perhaps", state: v1alpha1.StateDeleting, says: `annotation ` + skip + `: "perhaps" must be "true" or "false"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{}
			h, _ := testHandler(t, engine)
			rendered := 0
			h.revisions.Renderer.Generator = generatorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				rendered++
				return nil, test.err
			})
			obj := deletedWidget(test.inventory)
			obj.Annotations = map[string]string{skip: test.annotation}
			reconcileOnce(t, h, obj)
			if rendered != test.rendered {
				t.Errorf("rendered %d times, want %d", rendered, test.rendered)
			}
			state, _, message := obj.GetStatus().GetState()
			if test.says != "" {
				if state != test.state || !strings.Contains(message, test.says) || len(engine.deleted) > 0 {
					t.Errorf("%s: %s; %d deletions", state, message, len(engine.deleted))
				}
				return
			}
			if len(engine.deleted) != 1 {
				t.Fatalf("%d deletions; %s: %s", len(engine.deleted), state, message)
			}
			if request := engine.deleted[0]; request.SkipHooks != test.skipped || (request.Namespace != "") != (test.rendered > 0) {
				t.Errorf("asked for %+v", request)
			}
		})
	}
}

func TestAbandon(t *testing.T) {
	const annotation = "test.corbel.run/abandon"
	several := v1alpha1.Inventory{Format: 1, Target: "far", Items: []v1alpha1.InventoryItem{
		{Kind: "ConfigMap", Version: "v1", Namespace: "shop", Name: "a"}, {Kind: "Job", Group: "batch", Version: "v1", Namespace: "shop", Name: "done", Phase: vocabulary.PhaseCompleted},
		{Kind: "Deployment", Group: "apps", Version: "v1", Namespace: "shop", Name: "b"}, {Kind: "Namespace", Version: "v1", Name: "c"},
		{Kind: "ConfigMap", Version: "v1", Name: "taken", Phase: vocabulary.PhaseReleased}, {Kind: "Secret", Version: "v1", Namespace: "shop", Name: "d"},
	}}
	tests := []struct {
		name      string
		value     string
		inventory v1alpha1.Inventory
		done      bool
		event     string
	}{
		{"true", "true", several, true, "Warning|Abandoned|Delete|orphaned 4 objects in the cluster far: ConfigMap shop/a, Deployment.apps shop/b, Namespace c and 1 more"},
		{"with nothing left", "true", v1alpha1.Inventory{}, true, ""},
		{"false", "false", several, false, ""},
		{"a mistake", "yes", several, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{err: errors.New("no")}
			h, log := testHandler(t, engine)
			h.targets = &fakeTargets{err: target.ErrLocal}
			h.code.hooks[postDelete] = hooksOf(func(context.Context, client.Client, *widget) error { return errors.New("a hook ran") })
			obj := deletedWidget(test.inventory)
			obj.Annotations = map[string]string{annotation: test.value}
			if h.isAbandoned(obj) != test.done {
				t.Errorf("detached: %t", h.isAbandoned(obj))
			}
			if test.done {
				if err := h.deletion.finalize(t.Context(), obj, "", noCommit); err != nil {
					t.Error(err)
				}
			} else if res, err := h.deletion.delete(t.Context(), obj, noCommit); res == result.Success && err == nil {
				t.Error("it was deleted")
			}
			if want := test.event; want != "" && !slices.Contains(log.lines, want) || want == "" && len(log.lines) > 0 {
				t.Errorf("events %q, want %q", log.lines, want)
			}
		})
	}
}

func TestARefusalToEraseTheSecretsHoldsNoDeletionUp(t *testing.T) {
	resource := schema.GroupResource{Resource: "secrets"}
	for name, test := range map[string]struct {
		answer error
		held   bool
	}{
		"a right is missing":       {answer: apierrors.NewForbidden(resource, "s", errors.New("no"))},
		"a webhook refuses":        {answer: apierrors.NewBadRequest("admission webhook \"w\" denied the request")},
		"there is none":            {answer: apierrors.NewNotFound(resource, "s")},
		"the server is overloaded": {answer: apierrors.NewTooManyRequests("later", 1), held: true},
		"the server fails":         {answer: apierrors.NewInternalError(errors.New("no")), held: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, log := testHandler(t, &fakeEngine{})
			refusing := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
				Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
					return nil
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error {
					return test.answer
				},
			})
			h.revisions.Renderer.Revisions = revisions.NewStore(revisions.Options{Client: refusing, Name: h.self.Name})
			obj := deletedWidget(v1alpha1.Inventory{})
			obj.Status.Revision = 1
			if err := h.deletion.finalize(t.Context(), obj, "", noCommit); (err != nil) != test.held {
				t.Errorf("error %v", err)
			}
			said := len(log.lines) == 1 && strings.HasPrefix(log.lines[0], "Warning|SecretsLeft|Delete|")
			if said != (!test.held && !apierrors.IsNotFound(test.answer)) {
				t.Errorf("events %q", log.lines)
			}
		})
	}
}

func TestALiveComponentIsNotAbandoned(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	obj := newWidget()
	obj.Annotations = map[string]string{"test.corbel.run/abandon": "true"}
	reconcileOnce(t, h, obj)
	if len(engine.applied) != 1 {
		t.Error("the component is not reconciled")
	}
}

// TestTheWatchNotesWhichDeletionsOrphan: the garbage collector may have removed the finalizer before a reconcile reads the
// component.
func TestTheWatchNotesWhichDeletionsOrphan(t *testing.T) {
	alive := newWidget()
	state := func(deleting bool, finalizers ...string) *widget {
		obj := newWidget()
		if obj.Finalizers = finalizers; deleting {
			obj.DeletionTimestamp = &metav1.Time{Time: time.Unix(900, 0)}
		}
		return obj
	}
	deleting, orphaning := state(true, "ours"), state(true, "ours", "orphan")
	both := state(true, "foregroundDeletion", "orphan")
	for name, test := range map[string]struct {
		states       []*widget
		orphan, seen bool
	}{
		"an ordinary deletion": {[]*widget{alive, deleting}, false, true},
		"orphans":              {[]*widget{alive, orphaning}, true, true},
		"orphans, and the finalizer is gone again":       {[]*widget{alive, orphaning, deleting}, true, true},
		"orphans and foreground":                         {[]*widget{alive, both}, true, true},
		"orphans later":                                  {[]*widget{alive, deleting, orphaning, deleting}, true, true},
		"it was being deleted before":                    {[]*widget{deleting, deleting}, false, false},
		"it was orphaning before":                        {[]*widget{orphaning, deleting}, true, true},
		"the finalizer on an object that is not deleted": {[]*widget{alive, state(false, "orphan")}, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			c := &cascades{}
			p, before := c.noted(), test.states[0]
			p.Create(event.CreateEvent{Object: before})
			for _, next := range test.states[1:] {
				if !p.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: next}) {
					t.Error("an event is dropped")
				}
				before = next
			}
			if orphan, seen := c.of(before); orphan != test.orphan || seen != test.seen {
				t.Errorf("orphan %t, seen %t", orphan, seen)
			}
			another := newWidget()
			another.UID = "another"
			if _, seen := c.of(another); seen {
				t.Error("an earlier component of the name counts")
			}
			p.Delete(event.DeleteEvent{Object: before})
			if _, seen := c.of(before); seen {
				t.Error("it is remembered for ever")
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// smallStatus lets about ten objects into the status.
func smallStatus(b *bed) { component.SetInventoryThreshold(b.reconciler, 3000) }

// many are the values of config maps with numbers.
func many(from, to int) map[string]string {
	values := map[string]string{}
	for i := from; i < to; i++ {
		values[fmt.Sprintf("config-%02d", i)] = "1"
	}
	return values
}

// secrets returns the Secrets of the inventory.
func (b *bed) secrets() []corev1.Secret {
	b.Helper()
	list := &corev1.SecretList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	// The garbage collector removes those of the history; none runs here.
	return slices.DeleteFunc(list.Items, func(secret corev1.Secret) bool { return secret.Type == operatorName+"/revisions" })
}

// anew replaces the operator by another process.
func (b *bed) anew() {
	b.Helper()
	b.anewVia(nil)
}

func (b *bed) anewVia(wrap func(http.RoundTripper) http.RoundTripper) {
	b.Helper()
	b.reconciler = component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	smallStatus(b)
	b.check(b.reconciler.SetupWithManager(newManagerVia(b.T, b.env, b.user, wrap)))
}

func TestALargeInventoryIsKeptInSecrets(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, smallStatus)
	b.create(widget.Spec{Values: many(0, 30)})
	w := b.until(v1alpha1.StateReady)
	if w.Status.Inventory.Count() != 30 || len(w.Status.Inventory.Items) != 0 || w.Status.Progress != "30/30" {
		t.Errorf("progress %s; inventory %+v", w.Status.Progress, w.Status.Inventory)
	}
	for _, s := range b.secrets() {
		owner := s.OwnerReferences[0]
		if string(s.Type) != operatorName+"/inventory" || !slices.Contains(s.Finalizers, operatorName+"/inventory") ||
			s.Labels[operatorName+"/inventory-of"] != string(w.UID) || owner.UID != w.UID || owner.BlockOwnerDeletion != nil || owner.Controller != nil {
			t.Errorf("Secret %s: %+v", s.Type, s.ObjectMeta)
		}
	}

	b.resetRequests()
	b.reconcile()
	b.anew()
	b.reconcile()
	if writes := b.writes(); len(writes) > 0 {
		t.Errorf("writes at rest, and after a restart: %v", writes)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values["config-07"] = "2" })
	b.resetRequests()
	b.until(v1alpha1.StateReady)
	writes := b.writes()
	if len(writes) != 4 || writes[0] != "update configmaps config-07" || !strings.HasPrefix(writes[1], "patch secrets main-inventory-") ||
		writes[2] != "patch secrets main-revisions" || writes[3] != "patch widgets/status main" {
		t.Errorf("writes for one change: %v", writes)
	}

	b.update(func(w *widget.Widget) { w.Spec.Values = many(0, 5) })
	w = b.until(v1alpha1.StateReady)
	if len(w.Status.Inventory.Items) != 5 || len(b.secrets()) != 0 {
		t.Errorf("%d items in the status and %d Secrets after most of the objects went", len(w.Status.Inventory.Items), len(b.secrets()))
	}

	b.update(func(w *widget.Widget) { w.Spec.Values = many(0, 30) })
	b.until(v1alpha1.StateReady)
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	if left := b.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets are still there", len(left))
	}
	if _, ok := b.configMap("config-29"); ok {
		t.Error("a config map is still there")
	}
}

// destroy removes a Secret of the inventory that holds items, against its finalizer.
func (b *bed) destroy() {
	b.Helper()
	for _, s := range b.secrets() {
		if len(s.Data) > 0 {
			s.Finalizers = nil
			b.check(b.client.Update(b.Context(), &s))
			b.check(b.client.Delete(b.Context(), &s))
			return
		}
	}
	b.Fatal("no Secret holds items")
}

func TestALostPartOfTheInventoryIsFoundAgain(t *testing.T) {
	for _, deleting := range []bool{false, true} {
		t.Run(fmt.Sprintf("deleting %t", deleting), func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, smallStatus)
			b.create(widget.Spec{Values: many(0, 30)})
			b.until(v1alpha1.StateReady)
			b.destroy()
			// Without its record the objects that are not desired any more would be lost.
			if deleting {
				b.check(b.client.Delete(t.Context(), b.get()))
				b.untilGone()
			} else {
				b.update(func(w *widget.Widget) { w.Spec.Values = many(0, 12) })
				w := b.until(v1alpha1.StateReady)
				if w.Status.Inventory.Count() != 12 {
					t.Errorf("%d objects are recorded, want 12", w.Status.Inventory.Count())
				}
			}
			for name := range maps.Keys(many(12, 30)) {
				if _, ok := b.configMap(name); ok {
					t.Errorf("config map %s is still there", name)
				}
			}
			b.wantEvent("InventoryRebuilt", "was lost (Secret "+b.namespace+"/main-inventory-")
		})
	}
}

// wantEvent waits for an event about the component.
func (b *bed) wantEvent(reason, text string) {
	b.Helper()
	b.eventually("event "+reason, func() error {
		list := &eventsv1.EventList{}
		if err := b.client.List(b.Context(), list, client.InNamespace(b.namespace)); err != nil {
			return err
		}
		for _, event := range list.Items {
			if event.Reason == reason && strings.Contains(event.Note, text) {
				return nil
			}
		}
		return fmt.Errorf("%d events, none with reason %s and %q", len(list.Items), reason, text)
	})
}

// wantNoEvent checks that there is no event of the reason. It is for events that are
// sent in a reconcile that was run long ago.
func (b *bed) wantNoEvent(reason string) {
	b.Helper()
	list := &eventsv1.EventList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	for _, event := range list.Items {
		if event.Reason == reason {
			b.Errorf("event %s: %s", reason, event.Note)
		}
	}
}

// eventually repeats a check until it succeeds.
func (b *bed) eventually(what string, check func() error) {
	b.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := check()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			b.Fatalf("waited %s for %s: %v", patience, what, err)
		}
	}
}

// busySecrets answers patches of Secrets as a server does that has too much to do.
type busySecrets struct{ busy atomic.Bool }

func (s *busySecrets) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !s.busy.Load() || r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/secrets/") {
			return next.RoundTrip(r)
		}
		const body = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"TooManyRequests","message":"too much to do","details":{"retryAfterSeconds":7},"code":429}`
		return &http.Response{
			StatusCode: http.StatusTooManyRequests, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
			Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
		}, nil
	})
}

// The queue makes one of the end of a component and the beginning of another one.
func TestASuccessorIsRequeuedUntilTheSecretsOfItsPredecessorAreRemoved(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	var server busySecrets
	b.anewVia(server.wrap)
	b.create(widget.Spec{Values: many(0, 30)})
	b.until(v1alpha1.StateReady)
	before := len(b.secrets())
	b.check(b.client.Delete(t.Context(), b.get()))
	b.patchFinalizers()
	for _, secret := range b.secrets() { // as the garbage collector does
		b.check(b.client.Delete(t.Context(), &secret))
	}
	b.create(widget.Spec{Values: map[string]string{"other": "1"}})
	server.busy.Store(true)
	for range 3 {
		w, result, err := b.reconcile()
		state, reason, message := w.Status.GetState()
		if state == v1alpha1.StatePending && reason == vocabulary.ReasonFirstSeen {
			continue
		}
		if state != v1alpha1.StatePending || reason != vocabulary.ReasonRetrying || !strings.Contains(message, "an earlier Widget "+b.key("main").String()) {
			t.Errorf("%s, %s: %s", state, reason, message)
		}
		if err != nil || result.RequeueAfter.Seconds() < 7 || result.RequeueAfter.Seconds() > 8 {
			t.Errorf("the reconcile returned %+v, %v", result, err)
		}
	}
	if _, exists := b.configMap("other"); exists || len(b.secrets()) != before || before == 0 {
		t.Errorf("config map: %t; %d Secrets of %d", exists, len(b.secrets()), before)
	}
	server.busy.Store(false)
	b.until(v1alpha1.StateReady)
	if left := b.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets of %d are left", len(left), before)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
}

// patchFinalizers leaves the component these finalizers.
func (b *bed) patchFinalizers(finalizers ...string) {
	b.Helper()
	w := b.get()
	before := w.DeepCopy()
	w.Finalizers = finalizers
	b.check(b.client.Patch(b.Context(), w, client.MergeFrom(before)))
}

// isNoEvent reports whether a request is none that is sent in the background.
func isNoEvent(r *http.Request) bool { return !strings.Contains(r.URL.Path, "/events") }

// TestACrashWhileTheInventoryIsInSecretsLosesNothing kills the operator at every
// request of the deletion of a namespace with a component with a large inventory, and replaces it.
func TestACrashWhileTheInventoryIsInSecretsLosesNothing(t *testing.T) {
	crashAtEachRequest(t, func(t *testing.T, at int, after bool) (int, bool) { return play(t, at, after) })
}

// crashAtEachRequest plays a story with an operator that is killed before, and one that is killed after, each of its requests. The story
// returns how many requests there are, and whether the operator was killed; at 0 it is not.
func crashAtEachRequest(t *testing.T, story func(t *testing.T, at int, after bool) (requests int, crashed bool)) {
	t.Helper()
	total, _ := story(t, 0, false)
	cases, ran, crashes := slice.FromEnvironment(t), 0, 0
	for at := 1; at <= total; at++ {
		for i, after := range []bool{false, true} {
			if !cases.Has(2*at + i) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				if _, crashed := story(t, at, after); crashed {
					crashes++
				}
			})
		}
	}
	t.Logf("%d requests, %d cases, %d of them crashed", total, ran, crashes)
	if crashes < ran*9/10 {
		t.Errorf("only %d of %d cases crashed", crashes, ran)
	}
}

// stage is a bed that replaces its operator after a crash.
type stage struct {
	*bed
	gate     *wire.Gate
	replaced bool
}

// play deletes the namespace and returns the number of requests after the trap was armed, and
// whether the operator was killed.
func play(t *testing.T, at int, after bool) (requests int, crashed bool) {
	t.Helper()
	s := &stage{gate: &wire.Gate{Counts: isNoEvent}}
	s.bed = newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, smallStatus, func(b *bed) {
		b.manager = newManagerVia(t, b.env, b.user, s.gate.Wrap)
	})
	namespaceGoes(s, at, after)
	s.eventually("the component to be gone", func() error {
		err := s.next()
		if getErr := s.client.Get(t.Context(), s.key("main"), &widget.Widget{}); !apierrors.IsNotFound(getErr) {
			return fmt.Errorf("it is still there (%v)", err)
		}
		return nil
	})
	if left := s.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets are left", len(left))
	}
	for name := range many(0, 18) {
		if _, ok := s.configMap(name); ok {
			t.Errorf("config map %s is still there", name)
		}
	}
	return len(s.gate.Requests()), s.gate.HasCrashed()
}

// next runs a reconcile.
func (s *stage) next() error {
	_, err := s.reconciler.Reconcile(s.Context(), ctrl.Request{NamespacedName: s.key("main")})
	if s.gate.HasCrashed() && !s.replaced {
		s.anew()
		s.replaced = true
	}
	return err
}

func (s *stage) ready(recorded int) {
	s.Helper()
	s.eventually("the component to become ready", func() error {
		err := s.next()
		w := s.get()
		if state, _, message := w.Status.GetState(); state != v1alpha1.StateReady || w.Status.AppliedGeneration != w.Generation {
			return fmt.Errorf("%s: %s (%v)", state, message, err)
		}
		return nil
	})
	if got := s.get().Status.Inventory.Count(); got != recorded {
		s.Errorf("%d objects are recorded, want %d", got, recorded)
	}
}

// namespaceGoes does what the namespace controller does, as far as it matters.
func namespaceGoes(s *stage, at int, after bool) {
	s.Helper()
	s.create(widget.Spec{Values: many(0, 18)})
	s.ready(18)
	s.check(s.client.Delete(s.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: s.namespace}}))
	for _, secret := range s.secrets() {
		s.check(s.client.Delete(s.Context(), &secret))
	}
	s.check(s.client.Delete(s.Context(), s.get()))
	held := &corev1.ConfigMap{}
	s.check(s.client.Get(s.Context(), s.key("config-07"), held))
	held.Finalizers = []string{"test.corbel.run/held"}
	s.check(s.client.Update(s.Context(), held))

	s.gate.Aim(at, after, nil)
	s.eventually("all objects but one to be gone", func() error {
		err := s.next()
		for name := range many(0, 18) {
			if _, ok := s.configMap(name); ok && name != held.Name {
				return fmt.Errorf("config map %s is there (%v)", name, err)
			}
		}
		return nil
	})
	s.check(s.client.Get(s.Context(), s.key(held.Name), held))
	held.Finalizers = nil
	s.check(s.client.Update(s.Context(), held))
}

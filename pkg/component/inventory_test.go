// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/env"
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
	b.restartWith(manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, smallStatus)
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
	b.wantNoWrites("writes at rest, and after a restart")

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
	b.destroy() // without the record of them, objects would be left
	b.remove()
	if left := b.secrets(); len(left) > 0 {
		t.Errorf("%d Secrets are still there", len(left))
	}
	for name := range many(0, 30) {
		if _, ok := b.configMap(name); ok {
			t.Errorf("config map %s is still there", name)
		}
	}
	b.wantEvent("InventoryRebuilt", "was lost (Secret "+b.namespace+"/main-inventory-")
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

// crashAtEachRequest plays a story with an operator that is killed before, and one that is killed after, each of its requests. The story
// returns how many requests there are, and whether the operator was killed; at 0 it is not.
func crashAtEachRequest(t *testing.T, story func(t *testing.T, at int, after bool) (requests int, crashed bool)) {
	t.Helper()
	env.Shared(t) // or the test is skipped
	total := 0
	t.Run("no crash", func(t *testing.T) { total, _ = story(t, 0, false) })
	if total < 3 {
		t.Errorf("only %d requests", total)
	}
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

// crashing replaces the operator by one that is killed at a request; at 0 it is not. The function that it returns reconciles until something
// is done, and replaces the operator when it was killed.
func (b *bed) crashing(
	generator manifests.Generator, options component.ReconcilerOptions, at int, after bool, configure ...func(*bed),
) (gate *wire.Gate, until func(what string, done func() bool)) {
	b.Helper()
	gate = &wire.Gate{Counts: isNoEvent}
	b.restartWith(generator, options, append(slices.Clone(configure), via(gate.Wrap))...)
	b.resetRequests()
	gate.Aim(at, after, nil)
	replaced := false
	return gate, func(what string, done func() bool) {
		b.Helper()
		b.eventually(what, func() error {
			// A process that was killed leaves a status without conditions.
			_, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key("main")})
			if gate.HasCrashed() && !replaced {
				b.restartWith(generator, options, configure...)
				replaced = true
			}
			if !done() {
				return fmt.Errorf("not yet: %v; %+v", err, b.get().Status.Conditions)
			}
			return nil
		})
	}
}

// TestACrashWhileTheInventoryIsInSecretsLosesNothing deletes the Secrets with the component, as happens in a namespace that goes.
func TestACrashWhileTheInventoryIsInSecretsLosesNothing(t *testing.T) {
	crashAtEachRequest(t, func(t *testing.T, at int, after bool) (requests int, crashed bool) {
		b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 18)}, component.ReconcilerOptions{}, smallStatus)
		for _, secret := range b.secrets() {
			b.check(b.client.Delete(t.Context(), &secret))
		}
		b.check(b.client.Delete(t.Context(), b.get()))
		hold := func(finalizers ...string) {
			held := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("config-07"), held))
			held.Finalizers = finalizers
			b.check(b.client.Update(t.Context(), held))
		}
		hold(operatorName + "/held")
		gate, until := b.crashing(manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, at, after, smallStatus)
		until("all objects but one are gone", func() bool { return len(b.labelled(operatorName)) == 1 })
		hold()
		until("the component is gone", func() bool { return apierrors.IsNotFound(b.client.Get(t.Context(), b.key("main"), &widget.Widget{})) })
		b.wantNone(slices.Collect(maps.Keys(many(0, 18)))...)
		if left := b.secrets(); len(left) > 0 {
			t.Errorf("%d Secrets are left", len(left))
		}
		return len(gate.Requests()), gate.HasCrashed()
	})
}

// forge changes the inventory in the status by hand.
func (b *bed) forge(change func(inventory *v1alpha1.Inventory)) {
	b.Helper()
	w := b.get()
	change(&w.Status.Inventory)
	b.check(b.client.Status().Update(b.Context(), w))
}

// forgeries are what a client that may write the status could write there; kube-system
// stands for what must not be touched.
func forgeries(namespace string, victim *corev1.ConfigMap) map[string]func(*v1alpha1.Inventory) {
	item := func(kind, namespace, name string) v1alpha1.InventoryItem {
		return v1alpha1.InventoryItem{Version: "v1", Kind: kind, Namespace: namespace, Name: name}
	}
	stolen := item("ConfigMap", victim.Namespace, victim.Name)
	stolen.UID, stolen.Digest = victim.UID, "d"
	return map[string]func(*v1alpha1.Inventory){
		"objects of others": func(i *v1alpha1.Inventory) {
			i.Items = append(i.Items, stolen, item("Namespace", "", "kube-system"), item("Namespace", "", "default"), item("Namespace", "", namespace),
				item("Service", "default", "kubernetes"))
		},
		"names only": func(i *v1alpha1.Inventory) {
			for n, own := range i.Items {
				i.Items[n] = item(own.Kind, own.Namespace, own.Name)
			}
		},
		"duplicates": func(i *v1alpha1.Inventory) { i.Items = append(append(i.Items, i.Items...), stolen, stolen) },
		"unknown phases and negative orders": func(i *v1alpha1.Inventory) {
			for n := range i.Items {
				i.Items[n].Phase, i.Items[n].Origin = "Dancing", "Mars"
				i.Items[n].ApplyOrder, i.Items[n].DeleteOrder = -32768, 32767
			}
			purged := stolen
			purged.Phase, purged.Origin = "Completing", "Namespace"
			i.Items = append(i.Items, purged)
		},
		"things that cannot exist": func(i *v1alpha1.Inventory) {
			i.Items = append(i.Items, v1alpha1.InventoryItem{}, item("ConfigMap", "../..", "../../x"), item("", "", "x"),
				v1alpha1.InventoryItem{Group: "a b", Version: "/", Kind: "No Kind", Name: "?"}, item("ConfigMap", "", "x"), item("Namespace", "somewhere", "x"))
		},
		"a head that is nonsense": func(i *v1alpha1.Inventory) {
			i.Chunks = &v1alpha1.InventoryChunks{Generation: -4, Current: 1 << 62, Chunks: make([]v1alpha1.InventoryChunk, 5000)}
		},
		"almost as much as the server takes": func(i *v1alpha1.Inventory) {
			for n := range 200 {
				i.Items = append(i.Items, item("ConfigMap", victim.Namespace, fmt.Sprintf("%d-%s", n, strings.Repeat("x", 5000))))
			}
		},
	}
}

func TestAForgedInventoryHealsAndTouchesNothingOfOthers(t *testing.T) {
	victim := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", GenerateName: "victim-"}}
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.check(b.client.Create(t.Context(), victim))
	for name, forge := range forgeries(b.namespace, victim) {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 3)}, component.ReconcilerOptions{})
			before := b.uids("config-00", "config-01", "config-02")

			b.forge(forge)
			b.resetRequests()
			b.update(func(w *widget.Widget) { w.Spec.Values["config-03"] = "1" })
			w := b.untilGeneration()
			if w.Status.Inventory.Count() != 4 {
				t.Errorf("the inventory did not heal: %d items", w.Status.Inventory.Count())
			}
			if size := statusSize(t, w); size > 1<<20 {
				t.Errorf("the status has %d bytes", size)
			}
			if after := b.uids("config-00", "config-01", "config-02"); fmt.Sprint(after) != fmt.Sprint(before) {
				t.Errorf("objects were created anew: %v, %v", before, after)
			}
			b.onlyOwn()

			b.forge(forge)
			b.remove()
			b.onlyOwn()
			if left := b.secrets(); len(left) > 0 {
				t.Errorf("%d Secrets are left", len(left))
			}
			now := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(victim), now))
			if now.ResourceVersion != victim.ResourceVersion {
				t.Error("an object of another client was changed")
			}
		})
	}
}

func TestTheSchemaOfTheInventoryRefusesWhatCannotBeDecoded(t *testing.T) {
	b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 3)}, component.ReconcilerOptions{})
	for _, refused := range []string{
		`"nonsense"`, `[]`, `{"objects":[]}`, `{"objects":"x"}`, `{"format":"1"}`, `{"format":3000000000}`, `{"target":1}`,
		`{"chunks":7}`, `{"chunks":{"generation":"x"}}`, `{"chunks":{"generation":1e300}}`,
		`{"chunks":{"generation":1,"chunks":[{"count":5000000000}]}}`,
	} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"inventory":`+refused+`}}`))
		if err := b.client.Status().Patch(t.Context(), b.get(), patch); !apierrors.IsInvalid(err) {
			t.Errorf("%s is not refused: %v", refused, err)
		}
	}
}

// untilGeneration reconciles until the current generation is ready.
func (b *bed) untilGeneration() *widget.Widget {
	b.Helper()
	var w *widget.Widget
	b.eventually("the component to become ready", func() error {
		var err error
		w, _, err = b.reconcile()
		if state, reason, message := w.Status.GetState(); state != v1alpha1.StateReady || w.Status.AppliedGeneration != w.Generation {
			return fmt.Errorf("%s, %s: %s (%v)", state, reason, message, err)
		}
		return nil
	})
	return w
}

// uids returns the uids of config maps.
func (b *bed) uids(names ...string) []types.UID {
	b.Helper()
	var uids []types.UID
	for _, name := range names {
		configMap := &corev1.ConfigMap{}
		b.check(b.client.Get(b.Context(), b.key(name), configMap))
		uids = append(uids, configMap.UID)
	}
	return uids
}

// onlyOwn checks that the operator wrote only in the namespace of the test.
func (b *bed) onlyOwn() {
	b.Helper()
	for _, e := range b.events()[b.since:] {
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		if e.User == b.user && !reads && e.Namespace != b.namespace {
			b.Errorf("the operator wrote elsewhere: %s %s %s/%s (%d)", e.Verb, e.Resource, e.Namespace, e.Name, e.Code)
		}
	}
}

func statusSize(t *testing.T, w *widget.Widget) int {
	t.Helper()
	raw, err := json.Marshal(w.Status)
	check(t, err)
	return len(raw)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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
		"nothing": func(i *v1alpha1.Inventory) { *i = v1alpha1.Inventory{} },
		"a head without Secrets": func(i *v1alpha1.Inventory) {
			i.Chunks = &v1alpha1.InventoryChunks{Generation: 4, Current: 4, Revision: 9,
				Types:  []v1alpha1.InventoryType{{Version: "v1", Kind: "ConfigMap"}},
				Chunks: []v1alpha1.InventoryChunk{{Count: 3, Revision: 9, Hash: strings.Repeat("0", 64)}}}
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
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: many(0, 3)})
			b.until(v1alpha1.StateReady)
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

			if name != "nothing" { // an object that is in no inventory cannot be found again
				b.forge(forge)
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			b.untilGone()
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

func TestWhatTheSchemaOfTheInventoryLetsPassStopsNothing(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: many(0, 3)})
	b.until(v1alpha1.StateReady)
	before := b.uids("config-00", "config-01", "config-02")
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
	own := "v1 ConfigMap " + b.namespace + "/config-00"
	for i, forged := range []string{
		`{"objects":{"` + own + `":"nonsense"}}`, `{"objects":{"` + own + `":7}}`, `{"objects":{"` + own + `":{"a":["b"]}}}`,
		`{"objects":{"` + own + `":"{\"applyOrder\":70000}"}}`, `{"objects":{"":"{}","x y":"{}","x y z/z/z":"{}"}}`, `{"items":{}}`, `{"items":["x"]}`,
	} {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"inventory":`+forged+`}}`))
		b.check(b.client.Status().Patch(t.Context(), b.get(), patch))
		b.update(func(w *widget.Widget) { w.Spec.Values["config-02"] = fmt.Sprint(i) })
		if w := b.untilGeneration(); w.Status.Inventory.Count() != 3 {
			t.Errorf("%s: the inventory did not heal: %d items", forged, w.Status.Inventory.Count())
		}
		if after := b.uids("config-00", "config-01", "config-02"); fmt.Sprint(after) != fmt.Sprint(before) {
			t.Errorf("%s: objects were created anew: %v, %v", forged, before, after)
		}
	}
	b.onlyOwn()
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/test/wire"
)

// TestTheInventoryOfAComponentWithoutANamespaceFollowsTheOperator: it stays where it is
// until it is moved for another reason, and nothing of it stays behind.
func TestTheInventoryOfAComponentWithoutANamespaceFollowsTheOperator(t *testing.T) {
	d := newFixture(t)
	d.component.Namespace, d.component.Kind = "", "ClusterShop"
	second := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inventory-"}}
	d.check(d.client.Create(t.Context(), second))
	at := func(namespace string) *process {
		c := d.process(nil)
		c.store.options.Namespace = namespace
		return c
	}
	count := func(namespace string) int {
		list := &corev1.SecretList{}
		d.check(d.client.List(t.Context(), list, client.InNamespace(namespace)))
		return len(list.Items)
	}
	first := d.key.Namespace
	d.check(at(first).reconcile(t.Context(), items(0, 12)))
	before := count(first)

	d.check(at(second.Name).reconcile(t.Context(), items(0, 12, 3)))
	if count(first) != before || count(second.Name) > 0 {
		t.Errorf("%d of %d Secrets are where they were, %d in the new namespace", count(first), before, count(second.Name))
	}
	at(second.Name).expect(items(0, 12, 3))

	d.check(at(second.Name).reconcile(t.Context(), items(0, 40)))
	if count(first) > 0 || count(second.Name) == 0 {
		t.Errorf("%d Secrets are where they were, %d in the new namespace", count(first), count(second.Name))
	}
	c := at(second.Name)
	c.expect(items(0, 40))
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.store.Erase(t.Context(), d.component, stored))
	if left := count(first) + count(second.Name); left > 0 {
		t.Errorf("%d Secrets are left", left)
	}
}

func TestAnInventoryThatFitsNowhereIsRefusedBeforeAnythingIsWritten(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var noise strings.Builder
	for noise.Len() < 2*maxEntry {
		fmt.Fprintf(&noise, "%016x", random.Uint64())
	}
	tests := map[string][]v1alpha1.InventoryItem{
		"objects": {{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a",
			Unknown: map[string]json.RawMessage{"noise": json.RawMessage(`"` + noise.String() + noise.String() + `"`)}}},
		"types": nil,
	}
	for i := range maxTypes + 1 {
		tests["types"] = append(tests["types"], v1alpha1.InventoryItem{Version: "v1", Kind: fmt.Sprintf("Kind%d", i), Name: "a"})
	}
	for name, list := range tests {
		s := &Snapshot{store: NewStore(Options{Name: reconcilerName})} // any request would panic
		err := s.Save(t.Context(), inventoryOf(list), nil)
		if _, ok := errors.AsType[*TooLargeError](err); !ok || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "split the component") {
			t.Errorf("too many %s: %v", name, err)
		}
	}
}

// denier refuses requests for Secrets with a method, and counts all for Secrets.
type denier struct {
	method   string
	requests atomic.Int64
}

func (d *denier) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if !strings.Contains(r.URL.Path, "/secrets") {
			return next.RoundTrip(r)
		}
		d.requests.Add(1)
		if r.Method != d.method {
			return next.RoundTrip(r)
		}
		return refusal(r, http.StatusForbidden), nil
	})
}

func TestWithoutRightsOnSecretsTheInventoryStaysInTheStatusAsLongAsItMay(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			d := newFixture(t)
			rights := &denier{method: method}
			c := d.process(rights.wrap)
			for n := range 3 {
				d.check(c.reconcile(t.Context(), items(0, 12, n)))
				stored, err := c.stored(t.Context())
				d.check(err)
				if diff := cmp.Diff(v1alpha1.InventoryItems(items(0, 12, n)), stored.Items); diff != "" || stored.Chunks != nil {
					t.Fatalf("the inventory is not in the status alone: %+v", stored)
				}
			}
			if asked := rights.requests.Load(); asked > 2 {
				t.Errorf("%d requests for Secrets that are refused", asked)
			}
			err := c.reconcile(t.Context(), items(0, 60))
			if err == nil {
				err = c.reconcile(t.Context(), items(0, 60)) // it is looked for now
			}
			if !apierrors.IsForbidden(err) {
				t.Errorf("an inventory that is too large for any status: %v", err)
			}
			granted := d.process(nil)
			d.check(granted.reconcile(t.Context(), items(0, 60)))
			if stored, err := granted.stored(t.Context()); err != nil || stored.Count() != 60 || len(stored.Items) > 0 {
				t.Errorf("with the rights: %+v, %v", stored, err)
			}
		})
	}
}

func TestACachedInventoryIsOpenedWithoutARequest(t *testing.T) {
	d := newFixture(t)
	requests := &denier{}
	c := d.process(requests.wrap)
	d.check(c.reconcile(t.Context(), items(0, 12)))
	stored, err := c.stored(t.Context())
	d.check(err)
	before := requests.requests.Load()
	snapshot, known := c.store.OpenCached(d.component, stored)
	if !known || requests.requests.Load() != before {
		t.Fatalf("known: %t, after %d requests", known, requests.requests.Load()-before)
	}
	if diff := cmp.Diff(inventoryOf(items(0, 12)), snapshot.Inventory()); diff != "" {
		t.Errorf("the inventory has changed:\n%s", diff)
	}
	// Another client changes a Secret. The next write notices it, and the reconcile after it repairs it.
	for _, secret := range d.secrets() {
		secret.Annotations["spoilt"] = "yes"
		d.check(d.client.Update(t.Context(), &secret))
	}
	if err := snapshot.Save(t.Context(), inventoryOf(items(0, 12, 3)), c.commit); !apierrors.IsConflict(err) {
		t.Errorf("a Secret that another client has changed is written: %v", err)
	}
	if _, known := c.store.OpenCached(d.component, stored); known {
		t.Error("after a write that failed, the inventory is known")
	}
	d.check(c.reconcile(t.Context(), items(0, 12, 3)))
	successor := d.component
	successor.UID = "another"
	now, err := c.stored(t.Context())
	d.check(err)
	for name, recall := range map[string]func() bool{
		"an older head":            func() bool { _, known := c.store.OpenCached(d.component, stored); return known },
		"another component":        func() bool { _, known := c.store.OpenCached(successor, now); return known },
		"another process":          func() bool { _, known := d.process(nil).store.OpenCached(d.component, now); return known },
		"an inventory in a status": func() bool { _, known := c.store.OpenCached(d.component, inventoryOf(items(0, 2))); return known },
	} {
		if recall() {
			t.Errorf("%s is known", name)
		}
	}
}

// A part of an inventory that another writer has changed meanwhile must not be overwritten.
func TestAWriteOfAPartSendsWhatItIsBasedOn(t *testing.T) {
	held := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": "shop", "name": "part"}}}
	recorder := wire.NewRecorder(held)
	c, err := client.New(recorder.Config(), client.Options{Scheme: clientgoscheme.Scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := NewStore(Options{Client: c, Name: reconcilerName, FieldOwner: reconcilerName, Namespace: "default"})
	s := secret{namespace: "shop", name: "part", uid: "u", resourceVersion: "7"}
	if _, err := l.patchSecret(t.Context(), s, map[string]any{"data": map[string]any{"entry": "eA=="}}); err != nil {
		t.Fatal(err)
	}
	sent := recorder.Sent(http.MethodPatch)
	if len(sent) != 1 || sent[0].Field("metadata", "uid") != "u" || sent[0].Field("metadata", "resourceVersion") != "7" {
		t.Errorf("sent %v", sent)
	}
}

func TestInATerminatingNamespaceTheInventoryShrinksInPlace(t *testing.T) {
	d, _ := spilled(t)
	d.terminate()
	names := map[string]bool{}
	for _, s := range d.secrets() {
		names[s.Name] = true
	}
	d.component.Deleting = true
	c := d.process(nil)
	for _, left := range []int{19, 8, 3, 1, 0} {
		d.check(c.reconcile(t.Context(), items(0, left)))
		d.process(nil).expect(items(0, left))
	}
	for _, s := range d.secrets() {
		if !names[s.Name] {
			t.Errorf("Secret %s was created", s.Name)
		}
	}
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.store.Erase(t.Context(), d.component, stored))
	d.nothingLeft()
}

func TestInATerminatingNamespaceALostPartIsRebuiltWithoutASecret(t *testing.T) {
	d, all := spilled(t)
	lost := d.full()
	d.terminate()
	d.check(d.client.Get(t.Context(), keyOf(lost), lost))
	lost.Finalizers = nil
	d.check(d.client.Update(t.Context(), lost))
	d.component.Deleting = true
	for left := len(all); left >= 0; left -= 5 {
		c := d.process(nil)
		d.check(c.open(t.Context()))
		c.snapshot.Restore(items(0, left))
		got := c.snapshot.Inventory()
		if len(got.Items) != left {
			t.Fatalf("%d items after the rebuilding, want %d", len(got.Items), left)
		}
		if left == 0 {
			break
		}
		stored, err := c.snapshot.SaveSecrets(t.Context(), inventoryOf(items(0, left-5)), c.commit)
		d.check(err)
		d.check(c.commit(t.Context(), stored))
		// A process that goes on knows what it found.
		d.check(c.open(t.Context()))
		if losses := c.snapshot.Losses(); len(losses) > 0 {
			t.Errorf("the same process found the losses %v again", losses)
		}
		if got := c.snapshot.Inventory(); len(got.Items) != left-5 {
			t.Errorf("the same process has %d items, want %d", len(got.Items), left-5)
		}
	}
	c := d.process(nil)
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.store.Erase(t.Context(), d.component, stored))
	d.nothingLeft()
}

func TestNothingIsRecordedAnewWhereItCannotBeKept(t *testing.T) {
	d, all := spilled(t)
	lost := d.full()
	d.terminate()
	d.check(d.client.Get(t.Context(), keyOf(lost), lost))
	lost.Finalizers = nil
	d.check(d.client.Update(t.Context(), lost))
	d.component.Deleting = true
	c := d.process(nil)
	d.check(c.open(t.Context()))
	c.snapshot.Restore(all)
	err := c.snapshot.Save(t.Context(), inventoryOf(items(0, 25)), c.commit)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("error: %v", err)
	}
}

// terminate deletes the namespace, and its Secrets, as the namespace controller does.
func (d *fixture) terminate() {
	d.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.key.Namespace}}
	d.check(d.client.Delete(d.Context(), namespace))
	for _, s := range d.secrets() {
		d.check(d.client.Delete(d.Context(), &s))
	}
}

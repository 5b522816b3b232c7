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
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// TestTheInventoryOfAComponentWithoutANamespaceFollowsTheOperator: it stays where it is
// until it is moved for another reason, and nothing of it stays behind.
func TestTheInventoryOfAComponentWithoutANamespaceFollowsTheOperator(t *testing.T) {
	d := newFixture(t)
	d.component.Namespace, d.component.Kind = "", "ClusterShop"
	second := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "inventory-"}}
	check.NoError(d, d.client.Create(t.Context(), second))
	at := func(namespace string) *process {
		c := d.process(nil)
		c.store.options.Namespace = namespace
		return c
	}
	count := func(namespace string) int {
		list := &corev1.SecretList{}
		check.NoError(d, d.client.List(t.Context(), list, client.InNamespace(namespace)))
		return len(list.Items)
	}
	first := d.key.Namespace
	check.NoError(d, at(first).reconcile(t.Context(), items(0, 12)))
	before := count(first)

	check.NoError(d, at(second.Name).reconcile(t.Context(), items(0, 12, 3)))
	if count(first) != before || count(second.Name) > 0 {
		t.Errorf("%d of %d Secrets are where they were, %d in the new namespace", count(first), before, count(second.Name))
	}
	at(second.Name).expect(items(0, 12, 3))

	check.NoError(d, at(second.Name).reconcile(t.Context(), items(0, 40)))
	if count(first) > 0 || count(second.Name) == 0 {
		t.Errorf("%d Secrets are where they were, %d in the new namespace", count(first), count(second.Name))
	}
	c := at(second.Name)
	c.expect(items(0, 40))
	stored := check.Must(c.stored(t.Context()))(d)
	check.NoError(d, c.store.Erase(t.Context(), d.component, stored))
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

func TestWithoutRightsOnSecretsTheInventoryStaysInTheStatusAsLongAsItMay(t *testing.T) {
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		t.Run(method, func(t *testing.T) {
			d := newFixture(t)
			rights := &refuser{method: method}
			rights.refuse(http.StatusForbidden, "")
			c := d.process(rights.wrap)
			for n := range 3 {
				check.NoError(d, c.reconcile(t.Context(), items(0, 12, n)))
				stored := check.Must(c.stored(t.Context()))(d)
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
			check.NoError(d, granted.reconcile(t.Context(), items(0, 60)))
			if stored, err := granted.stored(t.Context()); err != nil || stored.Count() != 60 || len(stored.Items) > 0 {
				t.Errorf("with the rights: %+v, %v", stored, err)
			}
		})
	}
}

func TestACachedInventoryIsOpenedWithoutARequest(t *testing.T) {
	d := newFixture(t)
	requests := &refuser{}
	c := d.process(requests.wrap)
	check.NoError(d, c.reconcile(t.Context(), items(0, 12)))
	stored := check.Must(c.stored(t.Context()))(d)
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
		check.NoError(d, d.client.Update(t.Context(), &secret))
	}
	if err := snapshot.Save(t.Context(), inventoryOf(items(0, 12, 3)), c.commit); !apierrors.IsConflict(err) {
		t.Errorf("a Secret that another client has changed is written: %v", err)
	}
	if _, known := c.store.OpenCached(d.component, stored); known {
		t.Error("after a write that failed, the inventory is known")
	}
	check.NoError(d, c.reconcile(t.Context(), items(0, 12, 3)))
	successor := d.component
	successor.UID = "another"
	now := check.Must(c.stored(t.Context()))(d)
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
	c := check.Must(client.New(recorder.Config(), client.Options{Scheme: clientgoscheme.Scheme}))(t)
	l := NewStore(Options{Client: c, Name: reconcilerName, FieldOwner: reconcilerName, Namespace: "default"})
	s := secret{namespace: "shop", name: "part", uid: "u", resourceVersion: "7"}
	check.Must(l.patchSecret(t.Context(), s, map[string]any{"data": map[string]any{"entry": "eA=="}}))(t)
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
		check.NoError(d, c.reconcile(t.Context(), items(0, left)))
		d.process(nil).expect(items(0, left))
	}
	for _, s := range d.secrets() {
		if !names[s.Name] {
			t.Errorf("Secret %s was created", s.Name)
		}
	}
	stored := check.Must(c.stored(t.Context()))(d)
	check.NoError(d, c.store.Erase(t.Context(), d.component, stored))
	d.nothingLeft()
}

func TestInATerminatingNamespaceALostPartIsRebuiltWithoutASecret(t *testing.T) {
	d, all := spilled(t)
	d.terminateAndLose()
	for left := len(all); left >= 0; left -= 5 {
		c := d.process(nil)
		check.NoError(d, c.open(t.Context()))
		c.snapshot.Restore(items(0, left))
		got := c.snapshot.Inventory()
		if len(got.Items) != left {
			t.Fatalf("%d items after the rebuilding, want %d", len(got.Items), left)
		}
		if left == 0 {
			break
		}
		stored := check.Must(c.snapshot.SaveSecrets(t.Context(), inventoryOf(items(0, left-5)), c.commit))(d)
		check.NoError(d, c.commit(t.Context(), stored))
		// A process that goes on knows what it found.
		check.NoError(d, c.open(t.Context()))
		if losses := c.snapshot.Losses(); len(losses) > 0 {
			t.Errorf("the same process found the losses %v again", losses)
		}
		if got := c.snapshot.Inventory(); len(got.Items) != left-5 {
			t.Errorf("the same process has %d items, want %d", len(got.Items), left-5)
		}
	}
	c := d.process(nil)
	stored := check.Must(c.stored(t.Context()))(d)
	check.NoError(d, c.store.Erase(t.Context(), d.component, stored))
	d.nothingLeft()
}

func TestNothingIsRecordedAnewWhereItCannotBeKept(t *testing.T) {
	d, all := spilled(t)
	d.terminateAndLose()
	c := d.process(nil)
	check.NoError(d, c.open(t.Context()))
	c.snapshot.Restore(all)
	err := c.snapshot.Save(t.Context(), inventoryOf(items(0, 25)), c.commit)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("error: %v", err)
	}
}

// terminateAndLose deletes the namespace, and loses a Secret that holds items.
func (d *fixture) terminateAndLose() {
	d.Helper()
	lost := d.full()
	d.terminate()
	check.NoError(d, d.client.Get(d.Context(), client.ObjectKeyFromObject(lost), lost))
	lost.Finalizers = nil
	check.NoError(d, d.client.Update(d.Context(), lost))
	d.component.Deleting = true
}

// terminate deletes the namespace, and its Secrets, as the namespace controller does.
func (d *fixture) terminate() {
	d.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.key.Namespace}}
	check.NoError(d, d.client.Delete(d.Context(), namespace))
	for _, s := range d.secrets() {
		check.NoError(d, d.client.Delete(d.Context(), &s))
	}
}

func TestTheNumberOfChunksDoesNotFlip(t *testing.T) {
	const kib = 1 << 10
	for _, test := range []struct {
		name            string
		size, now, want int
	}{
		{"fits into the status", 64 * kib, 0, 0},
		{"does not fit any more", 64*kib + 1, 0, 2},
		{"stays although it would fit", 50 * kib, 2, 2},
		{"comes back when there is room again", 48*kib - 1, 2, 0},
		{"grows in its chunks", 4 * 128 * kib, 4, 4},
		{"needs more", 4*128*kib + 1, 4, 16},
		{"shrinks in its chunks", 64 * 8 * kib, 64, 64},
		{"needs fewer", 64*8*kib - 1, 64, 8},
		{"is not moved for nothing", 8 * 64 * kib, 8, 8},
		{"is as large as can be", 1 << 30, 0, 256},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := limitsFor(DefaultThreshold)
			got := l.chunks(test.size, test.now)
			if got != test.want {
				t.Errorf("%d bytes in %d chunks move to %d, want %d", test.size, test.now, got, test.want)
			}
			check.SameNamed(t, "then they move on to", got, l.chunks(test.size, got))
		})
	}
}

func TestKeysAreSpreadAndStayWhereTheyAre(t *testing.T) {
	const n, chunks = 20000, 64
	counts := make([]int, chunks)
	for i := range n {
		item := v1alpha1.InventoryItem{Kind: "ConfigMap", Namespace: "shop", Name: fmt.Sprintf("config-%d", i)}
		counts[chunkOf(item, chunks)]++
		changed := item
		changed.UID, changed.Digest, changed.Version = "u", "d", "v2"
		if chunkOf(item, chunks) != chunkOf(changed, chunks) {
			t.Fatal("the chunk depends on more than the key")
		}
	}
	for i, count := range counts {
		if count < n/chunks*3/4 || count > n/chunks*5/4 {
			t.Errorf("chunk %d has %d of %d items", i, count, n)
		}
	}
	// Another version must find the items of a lost chunk, too.
	got := chunkOf(v1alpha1.InventoryItem{Group: "apps", Kind: "Deployment", Namespace: "shop", Name: "api"}, 256)
	if want := 129; got != want {
		t.Errorf("chunk %d, want %d: the function must never change", got, want)
	}
}

func TestWhatTheStatusHoldsIsSmall(t *testing.T) {
	head := v1alpha1.InventoryChunks{Generation: maxNumber, Current: maxNumber, Revision: maxNumber}
	for range maxChunks {
		head.Chunks = append(head.Chunks, v1alpha1.InventoryChunk{Count: 1 << 20, Revision: maxNumber, Hash: hashOf(nil)})
	}
	for range maxTypes {
		head.Types = append(head.Types, v1alpha1.InventoryType{Group: "some-quite-long-group.of.an-operator.example.com", Version: "v1beta1", Kind: "SomeKindWithALongName"})
	}
	raw := check.Must(json.Marshal(withHead(v1alpha1.Inventory{}, head)))(t)
	if len(raw) > 512<<10 {
		t.Errorf("the largest head has %d bytes", len(raw))
	}
}

func TestUnknownFieldsOfItemsSurvive(t *testing.T) {
	var before []v1alpha1.InventoryItem
	check.NoError(t, json.Unmarshal([]byte(`[{"version":"v1","kind":"ConfigMap","name":"a","future":{"x":[1,2]}}]`), &before))
	encoded, _, err := encode(before)
	check.NoError(t, err)
	raw := distribute(encoded, 1)[0].raw
	after := check.Must(unpack(gzipped.Pack(raw), v1alpha1.InventoryChunk{Count: 1, Hash: hashOf(raw)}))(t)
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("(-before +after):\n%s", diff)
	}
}

func TestNamesAreReadAsTheyAreMade(t *testing.T) {
	names := NewStore(Options{Name: reconcilerName}).naming(Component{Kind: "Shop", Namespace: "shop", Name: "a.very-long.name-that-goes-on-and-on.-and-on-and-on", UID: "1"})
	generation, index, ok := names.parse(names.name(12, 3))
	if generation != 12 || index != 3 || !ok {
		t.Errorf("%s is read as %d, %d, %t", names.name(12, 3), generation, index, ok)
	}
	for _, name := range []string{"other", names.prefix, names.prefix + "1", names.prefix + "1-", names.prefix + "01-1", names.prefix + "-1-1", names.name(1, 1) + "-1"} {
		if _, _, ok := names.parse(name); ok {
			t.Errorf("%s is taken for one of ours", name)
		}
	}
	for _, key := range []string{"", "r", "r-1", "r01", "1", "r1x", "r9223372036854775807"} {
		if _, ok := parseEntryKey(key); ok {
			t.Errorf("entry %q is taken for one of ours", key)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/gzipped"
)

// spilled returns a fixture with its inventory in Secrets.
func spilled(t *testing.T) (*fixture, []v1alpha1.InventoryItem) {
	t.Helper()
	d, all := newFixture(t), items(0, 20)
	d.check(d.process(nil).reconcile(t.Context(), all))
	return d, all
}

// full returns a Secret that holds items.
func (d *fixture) full() *corev1.Secret {
	d.Helper()
	for _, s := range d.secrets() {
		if len(s.Data) > 0 {
			return &s
		}
	}
	d.Fatal("no Secret holds items")
	return nil
}

func TestALostOrTamperedSecretIsNoticedAndRebuilt(t *testing.T) {
	damages := map[string]struct {
		do  func(d *fixture, s *corev1.Secret)
		why string
	}{
		"deleted with its finalizer": {func(d *fixture, s *corev1.Secret) {
			s.Finalizers = nil
			d.check(d.client.Update(d.Context(), s))
			d.check(d.client.Delete(d.Context(), s))
		}, "does not exist"},
		"emptied": {func(d *fixture, s *corev1.Secret) {
			s.Data = nil
			d.check(d.client.Update(d.Context(), s))
		}, "has no entry"},
		"other bytes": {func(d *fixture, s *corev1.Secret) {
			for key := range s.Data {
				s.Data[key] = []byte("nonsense")
			}
			d.check(d.client.Update(d.Context(), s))
		}, "not compressed"},
		"other items": {func(d *fixture, s *corev1.Secret) {
			encoded, _, err := encode(items(100, 101))
			d.check(err)
			for key := range s.Data {
				s.Data[key] = gzipped.Pack(distribute(encoded, 1)[0].raw)
			}
			d.check(d.client.Update(d.Context(), s))
		}, "hash"},
		"a bomb": {func(d *fixture, s *corev1.Secret) {
			bomb := gzipped.Pack(make([]byte, maxContent+1000))
			for key := range s.Data {
				s.Data[key] = bomb
			}
			d.check(d.client.Update(d.Context(), s))
		}, "unpacks to more than"},
	}
	for name, damage := range damages {
		t.Run(name, func(t *testing.T) {
			d, all := spilled(t)
			damage.do(d, d.full())
			c := d.process(nil)
			d.check(c.open(t.Context()))
			losses := c.snapshot.Losses()
			if len(losses) != 1 || !strings.Contains(losses[0].String(), damage.why) {
				t.Fatalf("losses %v, want one with %q", losses, damage.why)
			}
			lost := len(all) - len(c.snapshot.Inventory().Items)
			if lost < 1 || lost > len(all)/2 {
				t.Errorf("%d of %d items are lost", lost, len(all))
			}
			if err := c.snapshot.Save(t.Context(), c.snapshot.Inventory(), c.commit); err == nil {
				t.Error("an inventory that lacks items was written")
			}
			d.check(c.open(t.Context()))
			if diff := cmp.Diff([]v1alpha1.InventoryType{{Version: "v1", Kind: "ConfigMap"}}, c.snapshot.Types()); diff != "" {
				t.Errorf("types to look for (-want +got):\n%s", diff)
			}
			// What is found besides, and is known not to be in the inventory, is left out.
			if restored := c.snapshot.Restore(all); restored != lost {
				t.Errorf("%d items were restored, want %d", restored, lost)
			}
			d.check(c.snapshot.Save(t.Context(), c.snapshot.Inventory(), c.commit))
			d.process(nil).expect(all)
			for _, s := range d.secrets() {
				if s.DeletionTimestamp != nil {
					t.Errorf("Secret %s of the old set stays", s.Name)
				}
			}
		})
	}
}

func TestASecretThatLostItsProtectionGetsItBack(t *testing.T) {
	d, all := spilled(t)
	s := d.full()
	s.Finalizers, s.Labels, s.OwnerReferences = nil, nil, nil
	d.check(d.client.Update(t.Context(), s))
	d.process(nil).expect(all)
	d.check(d.client.Get(t.Context(), client.ObjectKeyFromObject(s), s))
	if len(s.Finalizers) != 1 || len(s.Labels) != 1 || len(s.OwnerReferences) != 1 {
		t.Errorf("metadata %+v", s.ObjectMeta)
	}
}

func TestASecretThatIsBeingDeletedIsReplaced(t *testing.T) {
	d, all := spilled(t)
	d.check(d.client.Delete(t.Context(), d.full()))
	d.process(nil).expect(all)
	d.check(d.process(nil).reconcile(t.Context(), all))
	d.process(nil).expect(all)
	for _, s := range d.secrets() {
		if s.DeletionTimestamp != nil {
			t.Errorf("Secret %s is still being deleted", s.Name)
		}
	}
}

func TestAForgedHeadDoesNoHarm(t *testing.T) {
	forgeries := map[string]func(head *v1alpha1.InventoryChunks){
		"negative numbers":      func(h *v1alpha1.InventoryChunks) { h.Generation, h.Current, h.Revision = -1, -1, -1 },
		"huge numbers":          func(h *v1alpha1.InventoryChunks) { h.Generation, h.Revision = math.MaxInt64, math.MaxInt64 },
		"another set":           func(h *v1alpha1.InventoryChunks) { h.Generation, h.Current = 7, 7 },
		"a set that is to come": func(h *v1alpha1.InventoryChunks) { h.Current = 7 },
		"no chunks":             func(h *v1alpha1.InventoryChunks) { h.Chunks = nil },
		"too many chunks":       func(h *v1alpha1.InventoryChunks) { h.Chunks = make([]v1alpha1.InventoryChunk, 1000) },
		"an odd chunk":          func(h *v1alpha1.InventoryChunks) { h.Chunks = h.Chunks[:3] },
		"a negative count":      func(h *v1alpha1.InventoryChunks) { h.Chunks[0].Count = -3 },
		"a count too many":      func(h *v1alpha1.InventoryChunks) { h.Chunks[0].Count++ },
		"another hash":          func(h *v1alpha1.InventoryChunks) { h.Chunks[0].Hash = "0" },
		"types that are none": func(h *v1alpha1.InventoryChunks) {
			h.Chunks[0].Hash = "0"
			h.Types = append(h.Types, v1alpha1.InventoryType{Kind: "../../x", Version: "v1"}, v1alpha1.InventoryType{})
		},
		"a namespace": func(h *v1alpha1.InventoryChunks) { h.Namespace = "../kube-system" },
	}
	for name, forge := range forgeries {
		t.Run(name, func(t *testing.T) {
			d, all := spilled(t)
			c := d.process(nil)
			stored, err := c.stored(t.Context())
			d.check(err)
			forge(stored.Chunks)
			d.check(c.commit(t.Context(), stored))

			d.check(c.open(t.Context()))
			if len(c.snapshot.Losses()) == 0 {
				t.Fatal("the forgery was not noticed")
			}
			if types := c.snapshot.Types(); len(types) != 1 {
				t.Errorf("types to look for: %v", types)
			}
			c.snapshot.Restore(all)
			d.check(c.snapshot.Save(t.Context(), c.snapshot.Inventory(), c.commit))
			next := d.process(nil)
			next.expect(all)
			stored, err = next.stored(t.Context())
			d.check(err)
			d.check(next.store.Erase(t.Context(), d.component, stored))
			d.nothingLeft()
		})
	}
}

func TestANewerFormatIsRefused(t *testing.T) {
	_, err := NewStore(Options{}).Open(t.Context(), Component{}, v1alpha1.Inventory{Format: v1alpha1.InventoryFormat + 1})
	if _, ok := errors.AsType[*FormatError](err); !ok || !strings.Contains(err.Error(), "format 4") || !strings.Contains(err.Error(), "newer version") {
		t.Errorf("error: %v", err)
	}
}

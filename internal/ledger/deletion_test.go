// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestInATerminatingNamespaceTheRecordShrinksInPlace(t *testing.T) {
	d, _ := spilled(t)
	d.terminate()
	names := map[string]bool{}
	for _, s := range d.secrets() {
		names[s.Name] = true
	}
	d.component.Deleting = true
	c := d.clerk(nil)
	for _, left := range []int{19, 8, 3, 1, 0} {
		d.check(c.pass(t.Context(), items(0, left)))
		d.clerk(nil).expect(items(0, left))
	}
	for _, s := range d.secrets() {
		if !names[s.Name] {
			t.Errorf("Secret %s was created", s.Name)
		}
	}
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.ledger.Erase(t.Context(), d.component, stored))
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
		c := d.clerk(nil)
		d.check(c.open(t.Context()))
		c.book.Restore(items(0, left))
		got := c.book.Inventory()
		if len(got.Items) != left {
			t.Fatalf("%d items after the rebuilding, want %d", len(got.Items), left)
		}
		if left == 0 {
			break
		}
		stored, err := c.book.Keep(t.Context(), record(items(0, left-5)), c.commit)
		d.check(err)
		d.check(c.commit(t.Context(), stored))
		// A process that goes on knows what it found.
		d.check(c.open(t.Context()))
		if losses := c.book.Losses(); len(losses) > 0 {
			t.Errorf("the same process found the losses %v again", losses)
		}
		if got := c.book.Inventory(); len(got.Items) != left-5 {
			t.Errorf("the same process has %d items, want %d", len(got.Items), left-5)
		}
	}
	c := d.clerk(nil)
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.ledger.Erase(t.Context(), d.component, stored))
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
	c := d.clerk(nil)
	d.check(c.open(t.Context()))
	c.book.Restore(all)
	err := c.book.Record(t.Context(), record(items(0, 25)), c.commit)
	if !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		t.Errorf("error: %v", err)
	}
}

// terminate deletes the namespace, and its Secrets, as the namespace controller does.
func (d *desk) terminate() {
	d.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: d.key.Namespace}}
	d.check(d.client.Delete(d.Context(), namespace))
	for _, s := range d.secrets() {
		d.check(d.client.Delete(d.Context(), &s))
	}
}

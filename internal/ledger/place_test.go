// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TestTheRecordOfAComponentWithoutANamespaceFollowsTheOperator: it stays where it is
// until it is moved for another reason, and nothing of it stays behind.
func TestTheRecordOfAComponentWithoutANamespaceFollowsTheOperator(t *testing.T) {
	d := newDesk(t)
	d.component.Namespace, d.component.Kind = "", "ClusterShop"
	second := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "ledger-"}}
	d.check(d.client.Create(t.Context(), second))
	at := func(namespace string) *clerk {
		c := d.clerk(nil)
		c.ledger.options.Namespace = namespace
		return c
	}
	count := func(namespace string) int {
		list := &corev1.SecretList{}
		d.check(d.client.List(t.Context(), list, client.InNamespace(namespace)))
		return len(list.Items)
	}
	first := d.key.Namespace
	d.check(at(first).pass(t.Context(), items(0, 12)))
	before := count(first)

	d.check(at(second.Name).pass(t.Context(), items(0, 12, 3)))
	if count(first) != before || count(second.Name) > 0 {
		t.Errorf("%d of %d Secrets are where they were, %d in the new namespace", count(first), before, count(second.Name))
	}
	at(second.Name).expect(items(0, 12, 3))

	d.check(at(second.Name).pass(t.Context(), items(0, 40)))
	if count(first) > 0 || count(second.Name) == 0 {
		t.Errorf("%d Secrets are where they were, %d in the new namespace", count(first), count(second.Name))
	}
	c := at(second.Name)
	c.expect(items(0, 40))
	stored, err := c.stored(t.Context())
	d.check(err)
	d.check(c.ledger.Erase(t.Context(), d.component, stored))
	if left := count(first) + count(second.Name); left > 0 {
		t.Errorf("%d Secrets are left", left)
	}
}

func TestARecordThatFitsNowhereIsRefusedBeforeAnythingIsWritten(t *testing.T) {
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
		b := &Book{ledger: New(Options{Name: ledgerName})} // any request would panic
		err := b.Record(t.Context(), record(list), nil)
		if _, ok := errors.AsType[*TooLargeError](err); !ok || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), "split the component") {
			t.Errorf("too many %s: %v", name, err)
		}
	}
}

func TestTheFormInTheStatusIsTheOldOneAsLongAsItFits(t *testing.T) {
	d := newDesk(t)
	c := d.clerk(nil)
	d.check(c.pass(t.Context(), items(0, 3)))
	stored, err := c.stored(t.Context())
	d.check(err)
	if stored.Format != v1alpha1.InventoryFormat || stored.Chunks != nil || len(stored.Items) != 3 {
		t.Errorf("a small record: %+v", stored)
	}
	d.check(c.pass(t.Context(), items(0, 12)))
	if stored, err = c.stored(t.Context()); err != nil || stored.Format != v1alpha1.InventoryFormatChunked || len(stored.Items) > 0 || stored.Count() != 12 {
		t.Errorf("a large record: %+v, %v", stored, err)
	}
	d.check(c.pass(t.Context(), items(0, 3)))
	if stored, err = c.stored(t.Context()); err != nil || len(stored.Items) != 3 || stored.Count() != 3 {
		t.Errorf("a record that became small: %+v, %v", stored, err)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

func TestATypeKeepsTheNewestOrphansAndTheInputStaysAsItIs(t *testing.T) {
	definition := &unit{item: v1alpha1.InventoryItem{Defines: []v1alpha1.TypeInfo{{Group: "example.com", Kind: "Foo"}}}}
	instance := func(i int) *unit { return &unit{live: Observation{UID: types.UID(fmt.Sprint("u", i))}} }
	var before []types.UID
	for i := range maxKept + 2 {
		if i == maxKept {
			before = definition.item.Kept
		}
		if !definition.keep(instance(i), false) || definition.keep(instance(i), false) {
			t.Fatalf("instance %d is not news once", i)
		}
	}
	kept := definition.item.Kept
	if len(kept) != maxKept || kept[0] != "u2" || kept[maxKept-1] != types.UID(fmt.Sprint("u", maxKept+1)) {
		t.Errorf("%d uids, from %s to %s", len(kept), kept[0], kept[len(kept)-1])
	}
	if len(before) != maxKept || before[0] != "u0" {
		t.Error("the record of an earlier plan was changed")
	}
	if definition.keep(instance(-1), true) || len(definition.item.Kept) != maxKept || definition.item.Kept[0] != "u2" {
		t.Error("what was handed over counts as left behind")
	}
	namespace := &unit{}
	if !namespace.keep(instance(1), false) || !namespace.item.Keeps || namespace.item.Kept != nil {
		t.Errorf("namespace: %+v", namespace.item)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// listed is one item of a list of SAP component-operator-runtime, with the given fields in place of the usual ones.
func listed(t *testing.T, fields map[string]any) string {
	t.Helper()
	item := map[string]any{
		"version": "v1", "kind": "ConfigMap", "namespace": "shop", "name": "a", "adoptionPolicy": "IfUnowned", "reconcilePolicy": "OnObjectChange",
		"updatePolicy": "Replace", "deletePolicy": "Delete", "applyOrder": 0, "deleteOrder": 0, "digest": "0a1b", "phase": "Ready", "status": "Current",
		"lastAppliedAt": "2026-07-24T10:00:00Z",
	}
	for name, value := range fields {
		if item[name] = value; value == nil {
			delete(item, name)
		}
	}
	text, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAListOfItemsIsReadAsAnInventory(t *testing.T) {
	type fields = map[string]any
	usual := InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a", Digest: UnknownManifest, Inherited: true}
	with := func(change func(*InventoryItem)) InventoryItem {
		item := usual
		change(&item)
		return item
	}
	neverApplied := with(func(i *InventoryItem) { i.Digest = "" })
	for name, test := range map[string]struct {
		fields fields
		want   InventoryItem
	}{
		"ready":                        {fields{}, usual},
		"what is new there is ignored": {fields{"uid": "u", "seal": "forged", "phase": "Ready"}, usual},
		"being created":                {fields{"phase": "Creating"}, usual},
		"being updated":                {fields{"phase": "Updating"}, usual},
		"to be updated":                {fields{"phase": "ScheduledForApplication"}, usual},
		"never applied":                {fields{"phase": "ScheduledForApplication", "lastAppliedAt": nil}, neverApplied},
		"to be deleted":                {fields{"phase": "ScheduledForDeletion", "digest": ""}, neverApplied},
		"being deleted":                {fields{"phase": "Deleting", "digest": ""}, neverApplied},
		"without a phase":              {fields{"phase": nil}, neverApplied},
		"to be purged":                 {fields{"phase": "ScheduledForCompletion"}, with(func(i *InventoryItem) { i.Phase = "Completing" })},
		"being purged":                 {fields{"phase": "Completing"}, with(func(i *InventoryItem) { i.Phase = "Completing" })},
		"purged":                       {fields{"phase": "Completed", "status": ""}, with(func(i *InventoryItem) { i.Phase = "Completed" })},
		"in a group":                   {fields{"group": "apps", "kind": "Deployment"}, with(func(i *InventoryItem) { i.Group, i.Kind = "apps", "Deployment" })},
		"without a namespace":          {fields{"namespace": nil}, with(func(i *InventoryItem) { i.Namespace = "" })},
		"orders":                       {fields{"applyOrder": -32768, "deleteOrder": 32767}, with(func(i *InventoryItem) { i.ApplyOrder, i.DeleteOrder = -32768, 32767 })},
		"no delete policy":             {fields{"deletePolicy": ""}, usual},
		"orphan":                       {fields{"deletePolicy": "Orphan"}, with(func(i *InventoryItem) { i.DeletePolicy = DeletePolicyOrphan })},
		"orphan on apply":              {fields{"deletePolicy": "OrphanOnApply"}, with(func(i *InventoryItem) { i.DeletePolicy = DeletePolicyOrphanOnApply })},
		"orphan on delete":             {fields{"deletePolicy": "OrphanOnDelete"}, with(func(i *InventoryItem) { i.DeletePolicy = DeletePolicyOrphanOnDelete })},
		"a definition": {fields{"managedTypes": []fields{{"group": "x.y", "version": "v1", "kind": "Foo"}, {"group": "x.y", "version": "v2", "kind": "Foo"}}},
			with(func(i *InventoryItem) { i.Defines = []TypeInfo{{Group: "x.y", Kind: "Foo"}} })},
		"an APIService": {fields{"managedTypes": []fields{{"group": "x.y", "version": "v1", "kind": "*"}}},
			with(func(i *InventoryItem) { i.Defines = []TypeInfo{{Group: "x.y", Kind: "*"}} })},
	} {
		t.Run(name, func(t *testing.T) {
			list := "[" + listed(t, test.fields) + "]"
			var inventory Inventory
			if err := json.Unmarshal([]byte(list), &inventory); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(InventoryItems{test.want}, inventory.Items); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
			if again, err := json.Marshal(inventory); err != nil || string(again) != list {
				t.Errorf("before it is adopted, it is written as\n%s, %v, and was\n%s", again, err, list)
			}
			if !inventory.Adopt() || inventory.Adopt() || inventory.Format != InventoryFormat {
				t.Errorf("after the adoption: %+v", inventory)
			}
			text, err := json.Marshal(inventory)
			if err != nil {
				t.Fatal(err)
			}
			again := Inventory{Foreign: json.RawMessage("[]")}
			if err := json.Unmarshal(text, &again); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(inventory, again); diff != "" {
				t.Errorf("%s is read as (-want, +got):\n%s", text, diff)
			}
		})
	}
}

func TestAnEmptyListIsAnEmptyInventory(t *testing.T) {
	var inventory Inventory
	if err := json.Unmarshal([]byte(" []"), &inventory); err != nil || !inventory.IsEmpty() || !inventory.Adopt() {
		t.Errorf("%+v, %v", inventory, err)
	}
	if diff := cmp.Diff(Inventory{Format: InventoryFormat, Items: InventoryItems{}}, inventory); diff != "" {
		t.Error(diff)
	}
}

func TestAListWithAMistakeIsRefusedAsAWhole(t *testing.T) {
	type fields = map[string]any
	good := listed(t, fields{"name": "good"})
	for name, test := range map[string]struct{ list, says string }{
		"no objects":               {`["a", 1, null, []]`, "item 0: it is no object; item 1: it is no object; item 2: it is no object; and 1 more mistakes"},
		"another type of a field":  {"[" + good + "," + listed(t, fields{"applyOrder": "first"}) + "]", "item 1"},
		"no kind":                  {"[" + listed(t, fields{"kind": ""}) + "]", "item 0: kind is missing"},
		"no version":               {"[" + listed(t, fields{"version": nil}) + "]", "item 0 (ConfigMap shop/a): version is missing"},
		"no name":                  {"[" + listed(t, fields{"name": ""}) + "]", "item 0: name is missing"},
		"a slash":                  {"[" + listed(t, fields{"name": "b/c"}) + "]", "a name or a type has a slash or a space"},
		"an order that is too far": {"[" + listed(t, fields{"deleteOrder": 32768}) + "]", "deleteOrder 32768 is not from -32768 to 32767"},
		"another delete policy":    {"[" + listed(t, fields{"deletePolicy": "Burn"}) + "]", `deletePolicy "Burn" does not exist`},
		"another phase":            {"[" + listed(t, fields{"phase": "Dancing"}) + "]", `phase "Dancing" does not exist`},
		"an object twice":          {"[" + good + "," + listed(t, fields{"name": "good", "version": "v2"}) + "]", "item 1 (ConfigMap shop/good): the object is there twice"},
	} {
		t.Run(name, func(t *testing.T) {
			var inventory Inventory
			err := json.Unmarshal([]byte(test.list), &inventory)
			if err == nil || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), "status.inventory is a list, as SAP") {
				t.Errorf("error %v, want %s", err, test.says)
			}
			if !inventory.IsEmpty() {
				t.Errorf("it is read as %+v", inventory)
			}
		})
	}
}

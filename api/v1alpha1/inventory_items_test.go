// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A client with the right to write the status can write anything that the schema lets pass.
func TestWhatCannotBeReadOfAnItemLeavesItsName(t *testing.T) {
	settings := InventoryItems{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}}
	tests := map[string]struct {
		inventory string
		want      InventoryItems
	}{
		"no text":                 {`{"v1 ConfigMap shop/settings": 7}`, settings},
		"an object":               {`{"v1 ConfigMap shop/settings": {"uid":"u"}}`, settings},
		"null":                    {`{"v1 ConfigMap shop/settings": null}`, settings},
		"an empty text":           {`{"v1 ConfigMap shop/settings": ""}`, settings},
		"no JSON":                 {`{"v1 ConfigMap shop/settings": "{"}`, settings},
		"a number out of range":   {`{"v1 ConfigMap shop/settings": "{\"uid\":\"u\",\"applyOrder\":70000}"}`, settings},
		"a field of another type": {`{"v1 ConfigMap shop/settings": "{\"uid\":7}"}`, settings},
		"another name inside":     {`{"v1 ConfigMap shop/settings": "{\"kind\":\"Secret\",\"namespace\":\"x\",\"name\":\"y\"}"}`, settings},
		"an empty name":           {`{"": "{}"}`, nil},
		"a name without a kind":   {`{"settings": "{}", "v1 settings": "{}", " ConfigMap settings": "{}", "v1  settings": "{}", "v1 ConfigMap ": "{}"}`, nil},
		"in the order of objects": {
			`{"v1 Secret b/a": "{}", "v1 Secret a/b": "{}", "apps/v1 Deployment z": "{}", "v1 Secret a": "{}"}`,
			InventoryItems{
				{Version: "v1", Kind: "Secret", Name: "a"}, {Version: "v1", Kind: "Secret", Namespace: "a", Name: "b"},
				{Version: "v1", Kind: "Secret", Namespace: "b", Name: "a"}, {Group: "apps", Version: "v1", Kind: "Deployment", Name: "z"},
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var inventory Inventory
			if err := json.Unmarshal([]byte(`{"format":3,"objects":`+test.inventory+`}`), &inventory); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, inventory.Items); diff != "" {
				t.Errorf("items (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAListThatCannotBeReadRemainsAsItIs(t *testing.T) {
	for _, text := range []string{`{"items":[1]}`, `{"items":{}}`, `{"format":1,"items":[{"kind":7}]}`, `{"format":3,"items":[]}`} {
		var inventory Inventory
		if err := json.Unmarshal([]byte(text), &inventory); err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		written, err := json.Marshal(inventory)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(generic(t, []byte(text)), generic(t, written)); diff != "" || len(inventory.Items) > 0 {
			t.Errorf("%s is read as %+v and written as %s", text, inventory.Items, written)
		}
	}
}

func TestTheFirstWriteInANewFormatReplacesTheList(t *testing.T) {
	var inventory Inventory
	if err := json.Unmarshal(golden(t, "inventory-list.json"), &inventory); err != nil {
		t.Fatal(err)
	}
	inventory.Format = InventoryFormat
	written, err := json.Marshal(inventory)
	if err != nil {
		t.Fatal(err)
	}
	var content map[string]any
	if err := json.Unmarshal(written, &content); err != nil {
		t.Fatal(err)
	}
	if objects, _ := content["objects"].(map[string]any); len(objects) != len(inventory.Items) || content["items"] != nil {
		t.Errorf("written as %s", written)
	}
}

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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// golden reads a record as a file of testdata holds it, indented for people.
func golden(t testing.TB, name string) (data []byte) {
	t.Helper()
	data, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// generic decodes JSON without knowing what it means.
func generic(t testing.TB, data []byte) (value any) {
	t.Helper()
	if err := json.Unmarshal(data, &value); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return value
}

func TestARecordIsGivenBackAsItWasFound(t *testing.T) {
	for _, name := range []string{"inventory.json", "inventory-newer.json", "inventory-only-newer.json"} {
		t.Run(name, func(t *testing.T) {
			data := golden(t, name)
			var inventory Inventory
			if err := json.Unmarshal(data, &inventory); err != nil {
				t.Fatal(err)
			}
			written, err := json.Marshal(inventory)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(generic(t, data), generic(t, written)); diff != "" {
				t.Errorf("read and written again, the record has changed (-found, +written):\n%s", diff)
			}
			written, err = json.Marshal(inventory.DeepCopy())
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(generic(t, data), generic(t, written)); diff != "" {
				t.Errorf("a copy of the record has changed (-found, +written):\n%s", diff)
			}
		})
	}
}

// The server, and what patches status, see the record as untyped values.
func TestUnknownFieldsPassThroughUntypedObjects(t *testing.T) {
	type status struct {
		Inventory Inventory `json:"inventory,omitzero"`
	}
	var before status
	if err := json.Unmarshal(golden(t, "inventory-newer.json"), &before.Inventory); err != nil {
		t.Fatal(err)
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&before)
	if err != nil {
		t.Fatal(err)
	}
	var after status
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(content, &after); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(before, after); diff != "" {
		t.Errorf("there and back, the record has changed:\n%s", diff)
	}
	data, err := utiljson.Marshal(content)
	if err != nil {
		t.Fatal(err)
	}
	want := generic(t, golden(t, "inventory-newer.json"))
	if diff := cmp.Diff(want, generic(t, data).(map[string]any)["inventory"]); diff != "" {
		t.Errorf("the untyped record differs:\n%s", diff)
	}
}

func TestOnlyUnknownFieldsAreUnknown(t *testing.T) {
	var item InventoryItem
	text := `{"version":"v1","kind":"ConfigMap","name":"a","uid":"u","Name":"case matters", "rank": 9007199254740993, "notes": [ "a", {"b": null} ]}`
	if err := json.Unmarshal([]byte(text), &item); err != nil {
		t.Fatal(err)
	}
	want := InventoryItem{Version: "v1", Kind: "ConfigMap", Name: "a", UID: types.UID("u"), Unknown: map[string]json.RawMessage{
		"Name": json.RawMessage(`"case matters"`), "rank": json.RawMessage(`9007199254740993`), "notes": json.RawMessage(`["a",{"b":null}]`),
	}}
	if diff := cmp.Diff(want, item); diff != "" {
		t.Errorf("read (-want, +got):\n%s", diff)
	}
}

func TestADecodedItemKeepsNothingOfItsFormerContent(t *testing.T) {
	item := InventoryItem{Unknown: map[string]json.RawMessage{"old": json.RawMessage("1")}}
	if err := json.Unmarshal([]byte(`{"version":"v1","kind":"ConfigMap","name":"a"}`), &item); err != nil {
		t.Fatal(err)
	}
	if item.Unknown != nil {
		t.Errorf("a record without unknown fields was read, and there are %v", item.Unknown)
	}
}

func TestADamagedRecordIsAnError(t *testing.T) {
	for _, text := range []string{`[1]`, `{"format":"one"}`, `{"objects":[]}`, `{"objects":"x"}`, `{"newer":1,"format":"one"}`} {
		var inventory Inventory
		if err := json.Unmarshal([]byte(text), &inventory); err == nil {
			t.Errorf("%s is read as %+v", text, inventory)
		}
	}
}

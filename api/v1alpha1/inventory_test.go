// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"os"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/test/check"
)

func TestTypeInfoMatches(t *testing.T) {
	for _, test := range []struct {
		name        string
		pattern     TypeInfo
		group, kind string
		want        bool
	}{
		{"the very type", TypeInfo{Group: "example.com", Kind: "Foo"}, "example.com", "Foo", true},
		{"another kind", TypeInfo{Group: "example.com", Kind: "Foo"}, "example.com", "Bar", false},
		{"another case of the kind", TypeInfo{Group: "example.com", Kind: "Foo"}, "example.com", "foo", false},
		{"another group", TypeInfo{Group: "example.com", Kind: "Foo"}, "example.org", "Foo", false},
		{"a group below", TypeInfo{Group: "example.com", Kind: "Foo"}, "sub.example.com", "Foo", false},
		{"every kind of a group", TypeInfo{Group: "example.com", Kind: "*"}, "example.com", "Foo", true},
		{"every kind, but not of other groups", TypeInfo{Group: "example.com", Kind: "*"}, "example.org", "Foo", false},
		{"the core group", TypeInfo{Group: "", Kind: "Secret"}, "", "Secret", true},
		{"the core group is no wildcard", TypeInfo{Group: "", Kind: "Secret"}, "example.com", "Secret", false},
		{"every group", TypeInfo{Group: "*", Kind: "Foo"}, "example.com", "Foo", true},
		{"every group, the core too", TypeInfo{Group: "*", Kind: "Secret"}, "", "Secret", true},
		{"everything", TypeInfo{Group: "*", Kind: "*"}, "apps", "Deployment", true},
		{"one label before the suffix", TypeInfo{Group: "*.example.com", Kind: "*"}, "a.example.com", "Foo", true},
		{"several labels before the suffix", TypeInfo{Group: "*.example.com", Kind: "*"}, "b.a.example.com", "Foo", true},
		{"the suffix alone has no label before it", TypeInfo{Group: "*.example.com", Kind: "*"}, "example.com", "Foo", false},
		{"an empty label is none", TypeInfo{Group: "*.example.com", Kind: "*"}, ".example.com", "Foo", false},
		{"a longer label is not the suffix", TypeInfo{Group: "*.example.com", Kind: "*"}, "notexample.com", "Foo", false},
		{"a suffix that goes on", TypeInfo{Group: "*.example.com", Kind: "*"}, "a.example.com.org", "Foo", false},
		{"a suffix and another kind", TypeInfo{Group: "*.example.com", Kind: "Foo"}, "a.example.com", "Bar", false},
		{"an asterisk inside is no wildcard", TypeInfo{Group: "a.*.com", Kind: "Foo"}, "a.b.com", "Foo", false},
		{"an asterisk in the kind is no wildcard", TypeInfo{Group: "example.com", Kind: "Foo*"}, "example.com", "FooBar", false},
		{"a dot without a suffix matches nothing", TypeInfo{Group: "*.", Kind: "Foo"}, "example.com", "Foo", false},
		{"an empty kind is no wildcard", TypeInfo{Group: "example.com"}, "example.com", "Foo", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := test.pattern.Matches(test.group, test.kind); got != test.want {
				t.Errorf("%+v matches %s/%s: got %t, want %t", test.pattern, test.group, test.kind, got, test.want)
			}
		})
	}
}

func TestAnOrdinaryItemIsSmall(t *testing.T) {
	item := InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: "u", Digest: "d", ObservedHash: "s", AppliedHash: "a"}
	got := check.Must(json.Marshal(item))(t)
	want := `{"version":"v1","kind":"ConfigMap","namespace":"shop","name":"settings","uid":"u","digest":"d","seen":"s","accepted":"a"}`
	if string(got) != want {
		t.Errorf("what is as usual should not be written:\ngot  %s\nwant %s", got, want)
	}
}

// A client with the right to write the status can write anything that the schema lets pass.
func TestWhatCannotBeReadOfAnItemLeavesItsName(t *testing.T) {
	settings := InventoryItems{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings"}}
	for name, test := range map[string]struct {
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
	} {
		t.Run(name, func(t *testing.T) {
			var inventory Inventory
			check.NoError(t, json.Unmarshal([]byte(`{"format":3,"objects":`+test.inventory+`}`), &inventory))
			check.EqualNamed(t, "items", test.want, inventory.Items)
		})
	}
}

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
	text := check.Must(json.Marshal(item))(t)
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
			check.NoError(t, json.Unmarshal([]byte(list), &inventory))
			check.Equal(t, InventoryItems{test.want}, inventory.Items)
			if again, err := json.Marshal(inventory); err != nil || string(again) != list {
				t.Errorf("before it is adopted, it is written as\n%s, %v, and was\n%s", again, err, list)
			}
			if !inventory.Adopt() || inventory.Adopt() || inventory.Format != InventoryFormat {
				t.Errorf("after the adoption: %+v", inventory)
			}
			text := check.Must(json.Marshal(inventory))(t)
			again := Inventory{Foreign: json.RawMessage("[]")}
			check.NoError(t, json.Unmarshal(text, &again))
			check.EqualNamed(t, string(text)+" is read as", inventory, again)
		})
	}
}

func TestAnEmptyListIsAnEmptyInventory(t *testing.T) {
	var inventory Inventory
	if err := json.Unmarshal([]byte(" []"), &inventory); err != nil || !inventory.IsEmpty() || !inventory.Adopt() {
		t.Errorf("%+v, %v", inventory, err)
	}
	check.Equal(t, Inventory{Format: InventoryFormat, Items: InventoryItems{}}, inventory)
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
			check.Fails(t, err, test.says, "status.inventory is a list, as SAP")
			if !inventory.IsEmpty() {
				t.Errorf("it is read as %+v", inventory)
			}
		})
	}
}

// golden reads a record as a file of testdata holds it, indented for people.
func golden(t testing.TB, name string) []byte {
	t.Helper()
	return check.Must(os.ReadFile("testdata/" + name))(t)
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
			check.NoError(t, json.Unmarshal(data, &inventory))
			written := check.Must(json.Marshal(inventory))(t)
			check.EqualNamed(t, "read and written again, the record has changed", generic(t, data), generic(t, written))
			written = check.Must(json.Marshal(inventory.DeepCopy()))(t)
			check.EqualNamed(t, "a copy of the record has changed", generic(t, data), generic(t, written))
		})
	}
}

// The server, and what patches status, see the record as untyped values.
func TestUnknownFieldsPassThroughUntypedObjects(t *testing.T) {
	type status struct {
		Inventory Inventory `json:"inventory,omitzero"`
	}
	var before status
	check.NoError(t, json.Unmarshal(golden(t, "inventory-newer.json"), &before.Inventory))
	content := check.Must(runtime.DefaultUnstructuredConverter.ToUnstructured(&before))(t)
	var after status
	check.NoError(t, runtime.DefaultUnstructuredConverter.FromUnstructured(content, &after))
	check.EqualNamed(t, "there and back, the record has changed", before, after)
	data := check.Must(utiljson.Marshal(content))(t)
	want := generic(t, golden(t, "inventory-newer.json"))
	check.EqualNamed(t, "the untyped record differs", want, generic(t, data).(map[string]any)["inventory"])
}

func TestOnlyUnknownFieldsAreUnknown(t *testing.T) {
	var item InventoryItem
	text := `{"version":"v1","kind":"ConfigMap","name":"a","uid":"u","Name":"case matters", "rank": 9007199254740993, "notes": [ "a", {"b": null} ]}`
	check.NoError(t, json.Unmarshal([]byte(text), &item))
	want := InventoryItem{Version: "v1", Kind: "ConfigMap", Name: "a", UID: types.UID("u"), Unknown: map[string]json.RawMessage{
		"Name": json.RawMessage(`"case matters"`), "rank": json.RawMessage(`9007199254740993`), "notes": json.RawMessage(`["a",{"b":null}]`),
	}}
	check.EqualNamed(t, "read", want, item)
}

func TestADecodedItemKeepsNothingOfItsFormerContent(t *testing.T) {
	item := InventoryItem{Unknown: map[string]json.RawMessage{"old": json.RawMessage("1")}}
	check.NoError(t, json.Unmarshal([]byte(`{"version":"v1","kind":"ConfigMap","name":"a"}`), &item))
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"encoding/json"
	"testing"
)

func TestTypeInfoMatches(t *testing.T) {
	tests := []struct {
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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := test.pattern.Matches(test.group, test.kind); got != test.want {
				t.Errorf("%+v matches %s/%s: got %t, want %t", test.pattern, test.group, test.kind, got, test.want)
			}
		})
	}
}

func TestAnOrdinaryItemIsSmall(t *testing.T) {
	item := InventoryItem{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "settings", UID: "u", Digest: "d", ObservedHash: "s", AppliedHash: "a"}
	got, err := json.Marshal(item)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":"v1","kind":"ConfigMap","namespace":"shop","name":"settings","uid":"u","digest":"d","seen":"s","accepted":"a"}`
	if string(got) != want {
		t.Errorf("what is as usual should not be written:\ngot  %s\nwant %s", got, want)
	}
}

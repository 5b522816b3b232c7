// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// parse reads JSON the way clients of Kubernetes do: integers become int64.
func parse(t testing.TB, text string) map[string]any {
	t.Helper()
	var object map[string]any
	if err := utiljson.Unmarshal([]byte(text), &object); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return object
}

func TestSealsDistinguishOwnersObjectsAndKeys(t *testing.T) {
	keyed := Hasher{Key: []byte("k")}
	seal := keyed.Seal("owner", "ConfigMap", "a", "u1")
	if len(seal) != 22 {
		t.Errorf("got %q, want 22 characters", seal)
	}
	for name, other := range map[string]string{
		"owner": keyed.Seal("other", "ConfigMap", "a", "u1"), "object": keyed.Seal("owner", "ConfigMap", "a", "u2"),
		"key": Hasher{Key: []byte("l")}.Seal("owner", "ConfigMap", "a", "u1"), "purpose": keyed.Combine("owner", "ConfigMap", "a", "u1"),
	} {
		if other == seal {
			t.Errorf("another %s makes no difference", name)
		}
	}
	if unkeyed := (Hasher{}).Seal("owner", "ConfigMap", "a", "u1"); unkeyed != "" {
		t.Errorf("got the seal %q without a key", unkeyed)
	}
}

func TestManifestDependsOnContentOnly(t *testing.T) {
	tests := []struct {
		name string
		a, b map[string]any
		same bool
	}{
		{"the order of keys does not matter", parse(t, `{"a":1,"b":2,"c":{"x":1,"y":2}}`), parse(t, `{"c":{"y":2,"x":1},"b":2,"a":1}`), true},
		{"int64 and float64 of the same value", map[string]any{"a": int64(1)}, map[string]any{"a": 1.0}, true},
		{"all types of numbers", map[string]any{"a": []any{1, int32(2), uint64(3), uint32(4), uint(5), float32(6), json.Number("7"), json.Number("8.0"), json.Number("9e0")}}, parse(t, `{"a":[1,2,3,4,5,6,7,8,9]}`), true},
		{"negative zero is zero", map[string]any{"a": -1 * 0.0}, map[string]any{"a": int64(0)}, true},
		{"numbers beyond int64", map[string]any{"a": uint64(1) << 63}, map[string]any{"a": float64(1 << 63)}, true},
		{"a fraction is another number", parse(t, `{"a":1.5}`), parse(t, `{"a":1}`), false},
		{"great neighbours differ", parse(t, `{"a":9007199254740993}`), parse(t, `{"a":9007199254740992}`), false},
		{"a number is no string", parse(t, `{"a":1}`), parse(t, `{"a":"1"}`), false},
		{"true is no string", parse(t, `{"a":true}`), parse(t, `{"a":"true"}`), false},
		{"true is not false", parse(t, `{"a":true}`), parse(t, `{"a":false}`), false},
		{"null is not absent", parse(t, `{"a":null}`), parse(t, `{}`), false},
		{"an empty map is no empty list", parse(t, `{"a":{}}`), parse(t, `{"a":[]}`), false},
		{"the order of a list matters", parse(t, `{"a":[1,2]}`), parse(t, `{"a":[2,1]}`), false},
		{"strings do not run into each other", parse(t, `{"a":["b","c"]}`), parse(t, `{"a":["bc",""]}`), false},
		{"lists do not run into each other", parse(t, `{"a":[["b"],["c"]]}`), parse(t, `{"a":[["b","c"],[]]}`), false},
		{"keys and values do not run into each other", parse(t, `{"ab":"c"}`), parse(t, `{"a":"bc"}`), false},
		{"nesting matters", parse(t, `{"a":{"b":1}}`), parse(t, `{"a":{},"b":1}`), false},
		{"what is no JSON counts by its text", map[string]any{"a": []string{"x"}}, map[string]any{"a": []string{"y"}}, false},
		{"what cannot be encoded does not panic", map[string]any{"a": make(chan int)}, map[string]any{"a": "x"}, false},
		{"literals that are no number", map[string]any{"a": json.Number("x")}, map[string]any{"a": json.Number("y")}, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, h := range []Hasher{{}, {Key: []byte("key")}} {
				if same := h.Manifest(tt.a) == h.Manifest(tt.b); same != tt.same {
					t.Errorf("same is %t", same)
				}
			}
		})
	}
}

// Digests are kept in inventories: if these change, every object of every
// component is written once more after an upgrade of the operator.
func TestDigestsStayTheSame(t *testing.T) {
	manifest := parse(t, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","labels":{"x":"y"}},"data":{"k":"v"},"n":[1,2.5,true,null,{}]}`)
	live := parse(t, `{"metadata":{"name":"a","uid":"u","labels":{"x":"y"}},"data":{"k":"v","more":"w"},"n":[1,2.5,true,null,{}],"status":{}}`)
	for name, pair := range map[string][2]string{
		"manifest": {Hasher{}.Manifest(manifest), "nB3C0EQKGrFWszKGSXx9Xg"},
		"seen":     {Hasher{}.ObservedHash(live), "ngbgXzCBs3QQTgShP9G8CQ"},
		"accepted": {Hasher{}.AppliedHash(live, manifest, nil), "2:fXGYTgl64-9Fk-7HJjXgYQ"},
		"earlier":  {Hasher{}.EarlierAppliedHash("recorded", live, manifest, nil), "jxxUNq-o6QBwVJqzZqMBOA"},
		"keyed":    {Hasher{Key: []byte("key")}.Manifest(manifest), "vWflNI9IREBh0ukCs5xVrA"},
		"sealed":   {Hasher{Key: []byte("key")}.Seal("a", "b", "c"), "YlAnsV8nmtB3eyVlF9H1Tg"},
		"id":       {Hasher{Key: []byte("key")}.ID(), "3G91HAfP"},
		"combined": {Combine("a", "b"), "-ko1D1kGAh4nssrxlAkxng"},
		"owner":    {OwnerID("uid", "example.com", "Shop", "shop", "main"), "lllr6ue5bxf7bvwub2bwmeviwxfxt4ka"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: %s, want %s", name, pair[0], pair[1])
		}
	}
}

func TestKeysChangeDigests(t *testing.T) {
	object := parse(t, `{"data":{"pin":"MTIzNA=="}}`)
	digests := map[string]bool{}
	for _, key := range []string{"", "a", "b"} {
		h := Hasher{Key: []byte(key)}
		for _, digest := range []string{h.Manifest(object), h.ObservedHash(object), h.AppliedHash(object, object, nil)} {
			if len(strings.TrimPrefix(digest, appliedVersion)) != 22 {
				t.Errorf("%q has %d characters", digest, len(digest))
			}
			digests[digest] = true
		}
	}
	if len(digests) != 9 {
		t.Errorf("%d different digests, want 9", len(digests))
	}
}

func TestCombineAndOwnerIDKeepTheirPartsApart(t *testing.T) {
	if Combine("a", "b") == Combine("ab", "") || Combine("a", "b") == Combine("b", "a") || Combine() == Combine("") {
		t.Error("parts run into each other")
	}
	label := regexp.MustCompile(`^[a-z2-7]{32}$`)
	ids := map[string]bool{}
	for _, parts := range [][5]string{
		{"uid", "g", "k", "ns", "n"}, {"uid2", "g", "k", "ns", "n"}, {"uid", "g2", "k", "ns", "n"}, {"uid", "g", "k2", "ns", "n"},
		{"uid", "g", "k", "ns2", "n"}, {"uid", "g", "k", "ns", "n2"}, {"uid", "g", "k", "", "nsn"}, {"uid", "g", "k", "nsn", ""},
	} {
		id := OwnerID(parts[0], parts[1], parts[2], parts[3], parts[4])
		if !label.MatchString(id) {
			t.Errorf("%q is no label value", id)
		}
		ids[id] = true
	}
	if len(ids) != 8 {
		t.Errorf("%d different ids, want 8", len(ids))
	}
}

func TestObservedHashCoversEverythingButStatusAndServerKeptFields(t *testing.T) {
	const before = `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","resourceVersion":"5","generation":1,"labels":{"a":"b"}},"spec":{"a":1},"status":{"x":1}}`
	tests := []struct {
		name, after string
		same        bool
	}{
		{"status", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","resourceVersion":"6","generation":1,"labels":{"a":"b"}},"spec":{"a":1},"status":{"x":2}}`, true},
		{"server-kept metadata", `{"apiVersion":"v1","kind":"X","metadata":{"name":"a","uid":"1","generation":2,"managedFields":[{}],"creationTimestamp":"x","deletionTimestamp":"y","deletionGracePeriodSeconds":0,"selfLink":"z","labels":{"a":"b"}},"spec":{"a":1}}`, true},
		{"the type, which lists may leave out", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":1}}`, true},
		{"a label", `{"metadata":{"name":"a","uid":"1","labels":{"a":"c"}},"spec":{"a":1}}`, false},
		{"a new annotation", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"x":"y"}},"spec":{"a":1}}`, false},
		{"a finalizer", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"finalizers":["x"]},"spec":{"a":1}}`, false},
		{"another incarnation", `{"metadata":{"name":"a","uid":"2","labels":{"a":"b"}},"spec":{"a":1}}`, false},
		{"spec", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":2}}`, false},
		{"a new field", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"}},"spec":{"a":1},"data":{}}`, false},
		{"metadata that is no map", `{"metadata":"a","spec":{"a":1}}`, false},
		{"no metadata", `{"spec":{"a":1}}`, false},
		{"what the controller of Deployments counts", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"deployment.kubernetes.io/revision":"2"}},"spec":{"a":1}}`, true},
		{"another annotation beside it", `{"metadata":{"name":"a","uid":"1","labels":{"a":"b"},"annotations":{"deployment.kubernetes.io/revision":"2","x":"y"}},"spec":{"a":1}}`, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if same := (Hasher{}).ObservedHash(parse(t, before)) == (Hasher{}).ObservedHash(parse(t, tt.after)); same != tt.same {
				t.Errorf("same is %t", same)
			}
		})
	}
	if (Hasher{}).ObservedHash(nil) == (Hasher{}).ObservedHash(parse(t, before)) {
		t.Error("nothing is as good as something")
	}
}

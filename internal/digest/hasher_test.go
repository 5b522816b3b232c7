// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/corbel-run/corbel/test/check"
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
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			for _, h := range []Hasher{{}, {Key: []byte("key")}} {
				check.SameNamed(t, "same", tt.same, h.Manifest(tt.a) == h.Manifest(tt.b))
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
		check.SameNamed(t, name, pair[1], pair[0])
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
	for _, tt := range []struct {
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
	} {
		t.Run(tt.name, func(t *testing.T) {
			check.SameNamed(t, "same", tt.same, (Hasher{}).ObservedHash(parse(t, before)) == (Hasher{}).ObservedHash(parse(t, tt.after)))
		})
	}
	if (Hasher{}).ObservedHash(nil) == (Hasher{}).ObservedHash(parse(t, before)) {
		t.Error("nothing is as good as something")
	}
}

// drift is a live object before and after something happened, and whether
// the manifest has a say in it.
type drift struct {
	name                    string
	manifest, before, after string
	ignore                  []string
	drifted                 bool
}

func TestAcceptedCoversWhatTheManifestSets(t *testing.T) {
	const two = `{"c":[{"name":"a","x":1},{"name":"b","x":2}]}`
	for _, tt := range []drift{
		{name: "a value was changed", manifest: `{"a":1}`, before: `{"a":1}`, after: `{"a":2}`, drifted: true},
		{name: "a value was removed", manifest: `{"a":1}`, before: `{"a":1}`, after: `{}`, drifted: true},
		{name: "a value was set to null", manifest: `{"a":1}`, before: `{"a":1}`, after: `{"a":null}`, drifted: true},
		{name: "a whole map was removed", manifest: `{"a":{"b":{"c":1}}}`, before: `{"a":{"b":{"c":1}}}`, after: `{}`, drifted: true},
		{name: "a map became a string", manifest: `{"a":{"b":1}}`, before: `{"a":{"b":1}}`, after: `{"a":"b"}`, drifted: true},
		{name: "a list became a string", manifest: `{"a":[1]}`, before: `{"a":[1]}`, after: `{"a":"b"}`, drifted: true},
		{name: "the server answered another form, and keeps it", manifest: `{"cpu":"1000m"}`, before: `{"cpu":"1"}`, after: `{"cpu":"1"}`},
		{name: "a number changed its Go type only", manifest: `{"a":1}`, before: `{"a":1}`, after: `{"a":1.0}`},
		{name: "another client added a field", manifest: `{"a":{"b":1}}`, before: `{"a":{"b":1}}`, after: `{"a":{"b":1,"c":2},"d":3}`},
		{name: "another client filled an empty map", manifest: `{"a":{}}`, before: `{"a":{}}`, after: `{"a":{"b":1}}`},
		{name: "an empty map was removed", manifest: `{"v":[{"name":"v","emptyDir":{}}]}`, before: `{"v":[{"name":"v","emptyDir":{}}]}`, after: `{"v":[{"name":"v","hostPath":{"path":"/"}}]}`, drifted: true},
		{name: "an empty map became null", manifest: `{"a":{}}`, before: `{"a":{}}`, after: `{"a":null}`, drifted: true},
		{name: "an empty map became a string", manifest: `{"a":{}}`, before: `{"a":{}}`, after: `{"a":"b"}`, drifted: true},
		{name: "a map of which the server dropped all keys was removed", manifest: `{"a":{"b":"","c":null}}`, before: `{"a":{}}`, after: `{"d":{}}`, drifted: true},
		{name: "an empty map that the server dropped", manifest: `{"a":{}}`, before: `{}`, after: `{"b":1}`},
		{name: "empty annotations, labels and selectors of nodes that were dropped or filled", manifest: `{"metadata":{"annotations":{}},"spec":{"labels":{},"nodeSelector":{}}}`, before: `{"metadata":{"annotations":{}},"spec":{"labels":{},"nodeSelector":{}}}`, after: `{"metadata":{},"spec":{"labels":{"a":"b"}}}`},
		{name: "a selector of everything was narrowed", manifest: `{"podSelector":{}}`, before: `{"podSelector":{}}`, after: `{"podSelector":{"matchLabels":{"a":"b"}}}`, drifted: true},
		{name: "a spelled out selector of everything was narrowed", manifest: `{"selector":{"matchLabels":{}}}`, before: `{"selector":{}}`, after: `{"selector":{"matchLabels":{"a":"b"}}}`, drifted: true},
		{name: "a selector that admission narrows stays as it was accepted", manifest: `{"podSelector":{}}`, before: `{"podSelector":{"a":{"b":"c"}}}`, after: `{"podSelector":{"a":{"b":"c"},"d":"e"}}`},
		{name: "a rule for everything was narrowed", manifest: `{"ingress":[{}]}`, before: `{"ingress":[{}]}`, after: `{"ingress":[{"from":[{"a":"b"}]}]}`, drifted: true},
		{name: "an empty map below an ignored field was removed", manifest: `{"a":{"b":{}}}`, before: `{"a":{"b":{}}}`, after: `{}`, ignore: []string{"/a/b"}},
		{name: "null asks for nothing", manifest: `{"a":null}`, before: `{}`, after: `{"a":{"b":1}}`},
		{name: "absent and null are the same", manifest: `{"a":"x"}`, before: `{"a":null}`, after: `{}`},
		{name: "the status does not count", manifest: `{"a":1,"status":{"b":1}}`, before: `{"a":1,"status":{"b":1}}`, after: `{"a":1,"status":{"b":2}}`},
		{name: "an empty list was filled", manifest: `{"rules":[]}`, before: `{}`, after: `{"rules":[{"a":1}]}`, drifted: true},
		{name: "an empty list stays empty", manifest: `{"rules":[]}`, before: `{"rules":[]}`, after: `{"rules":null}`},
		{name: "an ignored field changed", manifest: `{"spec":{"replicas":1,"x":1}}`, before: `{"spec":{"replicas":1,"x":1}}`, after: `{"spec":{"replicas":5,"x":1}}`, ignore: []string{"/spec/replicas"}},
		{name: "the neighbour of an ignored field changed", manifest: `{"spec":{"replicas":1,"x":1}}`, before: `{"spec":{"replicas":1,"x":1}}`, after: `{"spec":{"replicas":1,"x":2}}`, ignore: []string{"/spec/replicas"}, drifted: true},
		{name: "something below an ignored field changed", manifest: `{"a":{"b":{"c":1}}}`, before: `{"a":{"b":{"c":1}}}`, after: `{"a":{"b":{"c":2}}}`, ignore: []string{"/a/b"}},
		{name: "an ignored key with a slash", manifest: `{"metadata":{"annotations":{"a/b~c":"1"}}}`, before: `{"metadata":{"annotations":{"a/b~c":"1"}}}`, after: `{"metadata":{"annotations":{"a/b~c":"2"}}}`, ignore: []string{"/metadata/annotations/a~1b~0c"}},
		{name: "an ignored field of a list element", manifest: `{"c":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`, before: `{"c":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`, after: `{"c":[{"name":"a","image":"x"},{"name":"b","image":"y"}]}`, ignore: []string{"/c/1/image"}},
		{name: "the same field of another list element", manifest: `{"c":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`, before: `{"c":[{"name":"a","image":"x"},{"name":"b","image":"x"}]}`, after: `{"c":[{"name":"a","image":"y"},{"name":"b","image":"x"}]}`, ignore: []string{"/c/1/image"}, drifted: true},
		{name: "an ignored element of a list of strings", manifest: `{"c":["a","b"]}`, before: `{"c":["a","b"]}`, after: `{"c":["a","x"]}`, ignore: []string{"/c/1"}},
		{name: "a whole ignored list", manifest: `{"c":["a","b"]}`, before: `{"c":["a","b"]}`, after: `{}`, ignore: []string{"/c"}},

		// Metadata.
		{name: "our label was removed", manifest: `{"metadata":{"labels":{"a":"b"}}}`, before: `{"metadata":{"labels":{"a":"b"}}}`, after: `{"metadata":{}}`, drifted: true},
		{name: "our annotation was changed", manifest: `{"metadata":{"annotations":{"a":"b"}}}`, before: `{"metadata":{"annotations":{"a":"b"}}}`, after: `{"metadata":{"annotations":{"a":"c"}}}`, drifted: true},
		{name: "another client annotated the object", manifest: `{"metadata":{"annotations":{"a":"b"}}}`, before: `{"metadata":{"annotations":{"a":"b"}}}`, after: `{"metadata":{"annotations":{"a":"b","c":"d"}}}`},
		{name: "server-kept fields do not count, whichever client set them", manifest: `{"metadata":{"resourceVersion":"1","uid":"1","generation":1}}`, before: `{"metadata":{"resourceVersion":"1","uid":"1","generation":1}}`, after: `{"metadata":{"resourceVersion":"2","uid":"2","generation":2}}`},
		{name: "our finalizer was removed", manifest: `{"metadata":{"finalizers":["a"]}}`, before: `{"metadata":{"finalizers":["a"]}}`, after: `{"metadata":{"finalizers":["b"]}}`, drifted: true},
		{name: "another client added a finalizer", manifest: `{"metadata":{"finalizers":["a"]}}`, before: `{"metadata":{"finalizers":["a"]}}`, after: `{"metadata":{"finalizers":["b","a"]}}`},
		{name: "finalizers that are ignored", manifest: `{"metadata":{"finalizers":["a"]}}`, before: `{"metadata":{"finalizers":["a"]}}`, after: `{"metadata":{}}`, ignore: []string{"/metadata/finalizers"}},
		{name: "finalizers of an odd shape", manifest: `{"metadata":{"finalizers":[{"a":1},1]}}`, before: `{"metadata":{"finalizers":[{"a":1}]}}`, after: `{"metadata":{"finalizers":"x"}}`},
		{name: "another client added an owner", manifest: `{"metadata":{"ownerReferences":[{"uid":"1","name":"a"}]}}`, before: `{"metadata":{"ownerReferences":[{"uid":"1","name":"a"}]}}`, after: `{"metadata":{"ownerReferences":[{"uid":"2","name":"b"},{"uid":"1","name":"a"}]}}`},
		{name: "metadata of an odd shape", manifest: `{"metadata":"x"}`, before: `{"metadata":"x"}`, after: `{"metadata":{}}`},

		// Lists.
		{name: "a list of strings counts as a whole", manifest: `{"c":["a"]}`, before: `{"c":["a"]}`, after: `{"c":["a","b"]}`, drifted: true},
		{name: "a list of strings in another order", manifest: `{"c":["a","b"]}`, before: `{"c":["a","b"]}`, after: `{"c":["b","a"]}`, drifted: true},
		{name: "a sidecar was injected", manifest: two, before: two, after: `{"c":[{"name":"z"},{"name":"a","x":1},{"name":"m"},{"name":"b","x":2,"y":3}]}`},
		{name: "an element was changed beside a sidecar", manifest: two, before: two, after: `{"c":[{"name":"z"},{"name":"a","x":1},{"name":"b","x":3}]}`, drifted: true},
		{name: "an element was removed", manifest: two, before: two, after: `{"c":[{"name":"b","x":2}]}`, drifted: true},
		{name: "an element was renamed", manifest: two, before: two, after: `{"c":[{"name":"a","x":1},{"name":"c","x":2}]}`, drifted: true},
		{name: "the elements changed places", manifest: two, before: two, after: `{"c":[{"name":"b","x":2},{"name":"a","x":1}]}`, drifted: true},
		{name: "the list was removed", manifest: two, before: two, after: `{}`, drifted: true},
		{name: "a live element is no map", manifest: two, before: two, after: `{"c":["a",{"name":"a","x":1},{"name":"b","x":2}]}`},
		{name: "ports by number and protocol", manifest: `{"p":[{"port":53,"protocol":"UDP","x":1},{"port":53,"x":2}]}`, before: `{"p":[{"port":53,"protocol":"UDP","x":1},{"port":53,"protocol":"TCP","x":2}]}`, after: `{"p":[{"port":80},{"port":53,"protocol":"UDP","x":1},{"port":53,"protocol":"TCP","x":2}]}`},
		{name: "the server added the protocol", manifest: `{"p":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53}]}`, before: `{"p":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53}]}`, after: `{"p":[{"containerPort":53,"protocol":"UDP"},{"containerPort":53,"protocol":"TCP"}]}`},
		{name: "a port 80 is no port \"80\"", manifest: `{"p":[{"port":80,"x":1}]}`, before: `{"p":[{"port":80,"x":1}]}`, after: `{"p":[{"port":"80","x":1}]}`, drifted: true},
		{name: "the node port that the server chose", manifest: `{"p":[{"port":80}]}`, before: `{"p":[{"port":80,"nodePort":30000}]}`, after: `{"p":[{"port":80,"nodePort":30001}]}`},
		{name: "a volume was mounted twice", manifest: `{"m":[{"name":"v","mountPath":"/a","x":1}]}`, before: `{"m":[{"name":"v","mountPath":"/a","x":1}]}`, after: `{"m":[{"name":"v","mountPath":"/b"},{"name":"v","mountPath":"/a","x":1}]}`},
		{name: "elements without a key count by position", manifest: `{"r":[{"verbs":["get"]},{"verbs":["list"]}]}`, before: `{"r":[{"verbs":["get"]},{"verbs":["list"]}]}`, after: `{"r":[{"verbs":["get"]},{"verbs":["list"]},{"verbs":["*"]}]}`, drifted: true},
		{name: "defaults in elements without a key", manifest: `{"r":[{"verbs":["get"]}]}`, before: `{"r":[{"verbs":["get"]}]}`, after: `{"r":[{"verbs":["get"],"x":1}]}`},
		{name: "elements with equal names count by position", manifest: `{"r":[{"name":"a","v":1},{"name":"a","v":2}]}`, before: `{"r":[{"name":"a","v":1},{"name":"a","v":2}]}`, after: `{"r":[{"name":"a","v":1}]}`, drifted: true},
		{name: "lists of lists", manifest: `{"r":[[{"name":"a","v":1}]]}`, before: `{"r":[[{"name":"a","v":1}]]}`, after: `{"r":[[{"name":"b"},{"name":"a","v":1}]]}`},
		{name: "a null element", manifest: `{"r":[null,1]}`, before: `{"r":[null,1]}`, after: `{"r":[null,2]}`, drifted: true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			manifest := parse(t, tt.manifest)
			before := Hasher{}.AppliedHash(parse(t, tt.before), manifest, tt.ignore)
			after := Hasher{}.AppliedHash(parse(t, tt.after), manifest, tt.ignore)
			check.SameNamed(t, "drifted", tt.drifted, before != after)
		})
	}
}

func TestAcceptedAssociatesLongListsWhateverTheirOrder(t *testing.T) {
	const n = 1000
	element := func(i, value int) any { return map[string]any{"name": fmt.Sprint(i), "value": int64(value)} }
	var wanted, live []any
	for i := range n {
		wanted = append(wanted, element(i, i))
		live = append(live, element(i, i), element(n+i, 0))
	}
	manifest := map[string]any{"env": wanted}
	accepted := func(list []any) string { return Hasher{}.AppliedHash(map[string]any{"env": list}, manifest, nil) }

	check.SameNamed(t, "foreign elements count", accepted(live), accepted(wanted))
	live[2*777] = element(777, 0)
	if accepted(wanted) == accepted(live) {
		t.Error("the change of an element was not noticed")
	}
	live[2*777] = element(777, 777)
	slices.Reverse(live)
	if accepted(wanted) == accepted(live) {
		t.Error("the change of the order was not noticed")
	}
}

// A recorded hash of the first version is compared in that version, which did not say which maps are there.
func TestAnEarlierAppliedHashIsMadeAsItWasRecorded(t *testing.T) {
	const recorded = "qIhWbeX8Cjc2-Bnl7tA0yw"
	manifest := parse(t, `{"spec":{"a":{},"b":[{"name":"x","c":1}],"podSelector":{}}}`)
	for _, tt := range []struct {
		live string
		same bool
	}{
		{`{"spec":{"a":{},"b":[{"name":"x","c":1}],"podSelector":{}}}`, true},
		{`{"spec":{"b":[{"name":"x","c":1}],"podSelector":{"d":"e"}}}`, true},
		{`{"spec":{"a":{},"b":[{"name":"x","c":2}],"podSelector":{}}}`, false},
	} {
		got := Hasher{}.EarlierAppliedHash(recorded, parse(t, tt.live), manifest, nil)
		if (got == recorded) != tt.same {
			t.Errorf("%s: got %s, same as %s: want %t", tt.live, got, recorded, tt.same)
		}
	}
	for _, none := range []string{"", Hasher{}.AppliedHash(manifest, manifest, nil)} {
		check.SameNamed(t, none, "", (Hasher{}).EarlierAppliedHash(none, manifest, manifest, nil))
	}
}

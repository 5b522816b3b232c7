// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package digest

import (
	"fmt"
	"slices"
	"testing"
)

// drift is a live object before and after something happened, and whether
// the manifest has a say in it.
type drift struct {
	name                    string
	manifest, before, after string
	ignore                  []string
	drifted                 bool
}

func (d drift) check(t *testing.T) {
	t.Helper()
	t.Run(d.name, func(t *testing.T) {
		manifest := parse(t, d.manifest)
		before := Hasher{}.AppliedHash(parse(t, d.before), manifest, d.ignore)
		after := Hasher{}.AppliedHash(parse(t, d.after), manifest, d.ignore)
		if drifted := before != after; drifted != d.drifted {
			t.Errorf("drifted is %t, want %t", drifted, d.drifted)
		}
	})
}

func TestAcceptedCoversWhatTheManifestSets(t *testing.T) {
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
	} {
		tt.check(t)
	}
}

func TestAcceptedMetadata(t *testing.T) {
	for _, tt := range []drift{
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
	} {
		tt.check(t)
	}
}

func TestAcceptedLists(t *testing.T) {
	const two = `{"c":[{"name":"a","x":1},{"name":"b","x":2}]}`
	for _, tt := range []drift{
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
		tt.check(t)
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

	if accepted(wanted) != accepted(live) {
		t.Error("foreign elements count")
	}
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
		if got := (Hasher{}).EarlierAppliedHash(none, manifest, manifest, nil); got != "" {
			t.Errorf("%q: got %q, though the record has no hash of an earlier version", none, got)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// objectsIn reads objects, one for each text.
func objectsIn(t *testing.T, texts ...string) []client.Object {
	t.Helper()
	var objects []client.Object
	for _, text := range texts {
		object := &unstructured.Unstructured{}
		encoded, err := yaml.YAMLToJSON([]byte(text))
		if err == nil {
			err = utiljson.Unmarshal(encoded, &object.Object)
		}
		if err != nil {
			t.Fatal(err)
		}
		objects = append(objects, object)
	}
	return objects
}

// through passes parts through their serialised form.
func through(t *testing.T, parts randomParts) randomParts {
	t.Helper()
	var k kept
	if err := k.keepParts(parts, nil); err != nil {
		t.Fatal(err)
	}
	return k.randomParts
}

func TestRandomPartsKeepTheirValues(t *testing.T) {
	config := func(content string) string {
		return "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, " + content + "}"
	}
	named := func(name, content string) string {
		return "{apiVersion: batch/v1, kind: Job, metadata: {name: " + name + "}, spec: {" + content + "}}"
	}
	tests := []struct {
		name string
		// The first rendering and another one of the same input; then one of another answer of the
		// cluster, and another one of the same.
		first, again, later, laterAgain []string
		want                            []string
	}{
		{
			name:  "a value beside one that the cluster changes",
			first: []string{config("data: {p: x1, q: old}")}, again: []string{config("data: {p: x2, q: old}")},
			later: []string{config("data: {p: x3, q: new}")}, laterAgain: []string{config("data: {p: x4, q: new}")},
			want: []string{config("data: {p: x1, q: new}")},
		},
		{
			name:  "an item of a list, and a number",
			first: []string{config("list: [a, x1, {n: 1}]")}, again: []string{config("list: [a, x2, {n: 2}]")},
			later: []string{config("list: [b, x3, {n: 3}]")}, laterAgain: []string{config("list: [b, x4, {n: 4}]")},
			want: []string{config("list: [b, x1, {n: 1}]")},
		},
		{
			name:  "a list that is longer meanwhile",
			first: []string{config("list: [x1]")}, again: []string{config("list: [x2]")},
			later: []string{config("list: [x3, x4]")}, laterAgain: []string{config("list: [x5, x6]")},
			want: []string{config("list: [x1, x4]")},
		},
		{
			name:  "a key",
			first: []string{config("data: {x1: a}")}, again: []string{config("data: {x2: a}")},
			later: []string{config("data: {x3: b}")}, laterAgain: []string{config("data: {x4: b}")},
			want: []string{config("data: {x1: a}")},
		},
		{
			name:  "a value that is looked up later, with a checksum",
			first: []string{config("data: {p: x1, sum: of-x2, q: y1}")}, again: []string{config("data: {p: x2, sum: of-x3, q: y2}")},
			later: []string{config("data: {p: x1, sum: of-x1, q: y3}")}, laterAgain: []string{config("data: {p: x1, sum: of-x1, q: y4}")},
			want: []string{config("data: {p: x1, sum: of-x2, q: y1}")},
		},
		{
			name:  "a name, beside one that is not random",
			first: []string{named("x1", "a: 1"), named("fixed", "a: 1")}, again: []string{named("x2", "a: 1"), named("fixed", "a: 1")},
			later: []string{named("fixed", "a: 2"), named("x3", "a: 2")}, laterAgain: []string{named("fixed", "a: 2"), named("x4", "a: 2")},
			want: []string{named("fixed", "a: 2"), named("x1", "a: 1")},
		},
		{
			name:  "one more name",
			first: []string{named("x1", "a: 1")}, again: []string{named("x2", "a: 1")},
			later: []string{named("x3", "a: 2"), named("x4", "a: 2")}, laterAgain: []string{named("x5", "a: 2"), named("x6", "a: 2")},
			want: []string{named("x1", "a: 1"), named("x4", "a: 2")},
		},
		{
			name:  "a key at the top",
			first: []string{config("x1: a")}, again: []string{config("x2: a")},
			later: []string{config("x3: b")}, laterAgain: []string{config("x4: b")},
			want: []string{config("x1: a")},
		},
		{
			name:  "an object that is gone, and a new one",
			first: []string{config("data: {p: x1}"), named("b", "p: x1")}, again: []string{config("data: {p: x2}"), named("b", "p: x2")},
			later: []string{named("b", "p: x3"), named("c", "p: x4")}, laterAgain: []string{named("b", "p: x5"), named("c", "p: x6")},
			want: []string{named("b", "p: x1"), named("c", "p: x4")},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			first := through(t, randomIn(objectsIn(t, test.first...), objectsIn(t, test.again...)))
			same := objectsIn(t, test.again...)
			first.restore(same)
			if diff := cmp.Diff(objectsIn(t, test.first...), same); diff != "" {
				t.Errorf("the same input (-want +got):\n%s", diff)
			}
			later := objectsIn(t, test.later...)
			through(t, randomIn(later, objectsIn(t, test.laterAgain...)).keep(first, later)).restore(later)
			if diff := cmp.Diff(objectsIn(t, test.want...), later); diff != "" {
				t.Errorf("another answer of the cluster (-want +got):\n%s", diff)
			}
		})
	}
}

// What is looked up follows the cluster when another client changes it.
func TestAValueThatIsLookedUpFollowsTheCluster(t *testing.T) {
	config := func(password, sum string) []client.Object {
		return objectsIn(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {p: "+password+", sum: "+sum+"}}")
	}
	parts := randomIn(config("x1", "of-x2"), config("x2", "of-x3"))
	for i, step := range []struct{ rendered, want []client.Object }{
		{config("x1", "of-x1"), config("x1", "of-x2")},
		{config("x1", "of-x1"), config("x1", "of-x2")},
		{config("rotated", "of-rotated"), config("rotated", "of-rotated")},
		{config("x1", "of-x1"), config("x1", "of-x1")},
	} {
		parts = through(t, randomParts{}.keep(parts, step.rendered))
		parts.restore(step.rendered)
		if diff := cmp.Diff(step.want, step.rendered); diff != "" {
			t.Errorf("step %d (-want +got):\n%s", i+1, diff)
		}
	}
}

func TestPartsThatFitNothingChangeNothing(t *testing.T) {
	const text = "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {p: x}, list: [1]}"
	var parts randomParts
	err := utiljson.Unmarshal([]byte(`{"values": [
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": ["data", "q"], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": ["data", 0], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": ["list", 1], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": ["list", -1], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": ["list", "a", "b"], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": [null], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, "path": [], "value": 1},
		{"object": {"apiVersion": "v1", "kind": "ConfigMap", "name": "b"}, "path": ["data"], "value": 1}
	], "groups": [{"apiVersion": "v1", "kind": "ConfigMap", "objects": [{}, {}]}]}`), &parts)
	if err != nil {
		t.Fatal(err)
	}
	objects := objectsIn(t, text)
	parts.restore(objects)
	if diff := cmp.Diff(objectsIn(t, text)[0], objects[0]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

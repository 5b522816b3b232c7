// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/manifests"
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

func TestWhichValueIsCarriedOver(t *testing.T) {
	object := func(text string) *unstructured.Unstructured {
		if text == "" {
			return nil
		}
		return objectsIn(t, text)[0].(*unstructured.Unstructured)
	}
	const secret, config = "{apiVersion: v1, kind: Secret, metadata: {name: a}, ", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, "
	tests := []struct {
		name         string
		live, before string
		path         []any
		fresh, want  any
	}{
		{"the live one", config + "data: {a: live}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "live"},
		{"a text of a Secret", secret + "data: {a: bGl2ZQ==}}", secret + "stringData: {a: rendered}}", []any{"stringData", "a"}, "fresh", "live"},
		{"of a Secret that lacks it", secret + "data: {b: bGl2ZQ==}}", secret + "stringData: {a: rendered}}", []any{"stringData", "a"}, "fresh", "rendered"},
		{"of what has been deleted", "", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
		{"of a field that is gone", config + "data: {b: live}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
		{"of what only the cluster has", config + "data: {a: live}}", "", []any{"data", "a"}, "fresh", "live"},
		{"of what is new", "", "", []any{"data", "a"}, "fresh", nil},
		{"of a map, without the defaults of the server", config + "data: {a: live, b: default}}", config + "data: {a: rendered}}", []any{"data"}, map[string]any{"a": "fresh"}, map[string]any{"a": "rendered"}},
		{"of a list of the same length", config + "list: [{a: live}]}", config + "list: [{a: rendered}]}", []any{"list", int64(0), "a"}, "fresh", "live"},
		{"of a list that others have changed", config + "list: [{a: theirs}, {a: live}]}", config + "list: [{a: rendered}]}", []any{"list", int64(0), "a"}, "fresh", "rendered"},
		{"of a field that has another type now", config + "data: {a: {b: c}}}", config + "data: {a: rendered}}", []any{"data", "a"}, "fresh", "rendered"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, exists := carriedValue(object(test.live), object(test.before), randomValue{Path: test.path, Value: test.fresh})
			if diff := cmp.Diff(test.want, got); diff != "" || exists != (test.want != nil) {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestAHookThatRanKeepsNothingThatCouldChangeIt(t *testing.T) {
	hook := objectsIn(t, `
apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  namespace: market
  labels: {app: shop}
  annotations:
    helm.sh/hook: pre-upgrade
    test.corbel.run/apply-order: "-20000"
    test.corbel.run/depends-on: batch/Job/other
    test.corbel.run/purge-order: "-10000"
    test.corbel.run/revision: "7"
    test.corbel.run/update-policy: recreate
spec: {template: {spec: {containers: [{name: main}]}}}
`)[0].(*unstructured.Unstructured)
	want := objectsIn(t, `
apiVersion: batch/v1
kind: Job
metadata:
  name: migration
  namespace: market
  annotations:
    test.corbel.run/apply-order: "-20000"
    test.corbel.run/adoption-policy: if-unowned
    test.corbel.run/ready-when: "true"
    test.corbel.run/reconcile-policy: once-per-manifest
    test.corbel.run/revision: "7"
    test.corbel.run/update-policy: ssa-merge
`)[0]
	if diff := cmp.Diff(want.(*unstructured.Unstructured).Object, (&Renderer{Self: &identity.Operator{Name: "test.corbel.run"}}).hookThatRan(hook).Object); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func rendered(value string) []client.Object {
	return []client.Object{&unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "value": value}}}
}

// byNothing explains no change.
func byNothing() bool { return false }

// changes plays reconciles at the interval and returns when what is applied changed.
func changes(interval, duration time.Duration, render func(reconcile int) []client.Object) []time.Duration {
	r, start, last := Last{}, time.Unix(1000, 0), ""
	var at []time.Duration
	for i := 0; time.Duration(i)*interval < duration; i++ {
		elapsed := time.Duration(i) * interval
		objects := render(i)
		chosen, _ := r.accept(Last{inputs: "inputs", digest: digestOfObjects(objects), objects: objects}, start.Add(elapsed), byNothing)
		if digest := digestOfObjects(chosen); digest != last {
			at, last = append(at, elapsed), digest
		}
	}
	return at
}

func TestARandomRenderingIsAppliedSeldom(t *testing.T) {
	random := func(reconcile int) []client.Object { return rendered(fmt.Sprint(reconcile)) }
	coin := func(reconcile int) []client.Object { return rendered(fmt.Sprint(reconcile * reconcile / 3 % 2)) }
	for name, render := range map[string]func(int) []client.Object{"always something else": random, "one of two": coin} {
		for _, interval := range []time.Duration{time.Second, time.Minute, 10 * time.Minute} {
			at := changes(interval, 24*time.Hour, render)
			for i, first := range at {
				inAnHour := 0
				for _, other := range at[i:] {
					if other-first < time.Hour {
						inAnHour++
					}
				}
				// With the creation there are two; each is one write of the object and one of the status.
				if inAnHour > 2 {
					t.Fatalf("%s, every %s: %d changes within an hour from %s: %v", name, interval, inAnHour, first, at)
				}
			}
			if name == "always something else" && float64(len(at)) > 5+math.Ceil(24*float64(time.Hour)/float64(holdLimit)) {
				t.Errorf("every %s: %d changes in a day", interval, len(at))
			}
		}
	}
}

func TestAChangeThatTheClusterExplainsIsAppliedAlthoughOthersAreHeldBack(t *testing.T) {
	r, now := Last{}, time.Unix(1000, 0)
	apply := func(answers, value string, explained, wantHeld bool, wantValue string) {
		t.Helper()
		objects := rendered(value)
		current := Last{inputs: "1", answers: answers, digest: digestOfObjects(objects), objects: objects}
		chosen, held := r.accept(current, now, func() bool { return explained })
		if got := chosen[0].(*unstructured.Unstructured).Object["value"]; held != wantHeld || got != wantValue {
			t.Errorf("value %s, held back %v; want %s, %v", got, held, wantValue, wantHeld)
		}
	}
	apply("1", "a", false, false, "a")
	apply("2", "b", false, false, "b") // it could not be rendered again
	apply("3", "c", true, false, "c")
	apply("3", "d", false, true, "c")
	apply("4", "e", false, true, "c")
}

func TestARenderingWithACauseIsNeverHeldBack(t *testing.T) {
	r, now := Last{}, time.Unix(1000, 0)
	apply := func(inputs, value string, wantHeld bool, wantValue string) {
		t.Helper()
		objects := rendered(value)
		chosen, held := r.accept(Last{inputs: inputs, digest: digestOfObjects(objects), objects: objects}, now, byNothing)
		if got := chosen[0].(*unstructured.Unstructured).Object["value"]; held != wantHeld || got != wantValue {
			t.Errorf("value %s, held back %v; want %s, %v", got, held, wantValue, wantHeld)
		}
	}
	apply("1", "a", false, "a")
	apply("2", "b", false, "b") // the component has changed
	apply("2", "b", false, "b")
	apply("2", "c", false, "c") // perhaps something that was looked up
	apply("2", "d", true, "c")
	if notices := r.Notices(); notices != nil {
		t.Errorf("after one change there are the notices %q", notices)
	}
	apply("3", "e", false, "e")
	now = now.Add(time.Second)
	apply("3", "f", false, "f")
	apply("3", "g", true, "f")
	now = now.Add(holdBase)
	apply("3", "h", false, "h")
	if r.Notices() == nil {
		t.Error("it is not reported that manifests are held back")
	}
	apply("3", "i", true, "h")
	now = now.Add(holdLimit)
	apply("3", "h", false, "h") // the renderings are equal again
	apply("3", "j", false, "j")
	apply("3", "k", true, "j")
	r = Last{}
	apply("3", "l", false, "l")
}

func TestTheOrderOfObjectsIsNoChange(t *testing.T) {
	a := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "a"}}}
	b := &unstructured.Unstructured{Object: map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "b"}}}
	if digestOfObjects([]client.Object{a, b}) != digestOfObjects([]client.Object{b, a}) {
		t.Error("the order counts")
	}
	if digestOfObjects([]client.Object{a, b}) == digestOfObjects([]client.Object{a, a}) {
		t.Error("the objects do not count")
	}
}

func TestWhatAnotherInputHasShownIsOver(t *testing.T) {
	last := Last{inputs: "an earlier input", finding: "differs"}
	last.accept(Last{inputs: "this input"}, time.Unix(1000, 0), byNothing)
	if notices := last.Notices(); notices != nil {
		t.Errorf("notices %q", notices)
	}
}

func TestAnotherLabelIsAnotherInput(t *testing.T) {
	ctx, w := manifests.Context{Digest: "1"}.In(t.Context()), &corev1.ConfigMap{}
	before := inputsOf(ctx, w)
	w.Labels = map[string]string{"tier": "gold"}
	if after := inputsOf(ctx, w); before == "" || after == before {
		t.Errorf("inputs %q, then %q", before, after)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"fmt"
	"math"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
)

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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

// lateType is a type that is installed after the component.
type lateType struct {
	*bench
	plural, kind string
}

func newLateType(t *testing.T, kind string) *lateType {
	l := &lateType{bench: newBench(t), plural: strings.ToLower(kind) + "s", kind: kind}
	l.managed = []v1alpha1.TypeInfo{{Group: "*.corbel.run", Kind: "*"}}
	return l
}

// install makes the type with a scope, again if it exists.
func (l *lateType) install(scope string) {
	l.t.Helper()
	l.uninstall()
	crd := definition(l.plural, l.kind)
	check.NoError(l.t, unstructured.SetNestedField(crd.Object, scope, "spec", "scope"))
	// The deletion of an old one takes its time.
	l.until("the type to be made", func() bool { return l.Create(l.t.Context(), crd.DeepCopy()) == nil })
	l.t.Cleanup(func() { _ = l.Delete(context.WithoutCancel(l.t.Context()), crd) })
}

func (l *lateType) uninstall() {
	l.t.Helper()
	crd := definition(l.plural, l.kind)
	if err := l.Delete(l.t.Context(), crd); client.IgnoreNotFound(err) != nil {
		l.t.Fatal(err)
	}
	l.until("the type to be gone", func() bool { return !l.stands(crd) })
}

// await calls until it is the type that is waited for. The server may need some time
// to say which types it serves while others go.
func (l *lateType) await(objects ...client.Object) {
	l.t.Helper()
	l.until("the wait for the type", func() bool {
		outcome, err := l.apply(objects...)
		if err != nil || outcome.Done() {
			l.t.Fatalf("%v; done: %t", err, outcome.Done())
		}
		return outcome.Waiting[0].Reason == report.WaitType
	})
	if len(l.recorded()) != len(objects) {
		l.t.Fatalf("on record are %v", l.recorded())
	}
}

// recorded are the instances on record, as "namespace/name".
func (l *lateType) recorded() []string {
	var recorded []string
	for _, item := range l.inventory.Items {
		if item.Kind == l.kind {
			recorded = append(recorded, item.Namespace+"/"+item.Name)
		}
	}
	return recorded
}

// live are the instances in the cluster, in the namespace of the test or in none,
// each with its uid.
func (l *lateType) live() map[string]string {
	l.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("engine.corbel.run/v1")
	list.SetKind(l.kind + "List")
	check.NoError(l.t, l.List(l.t.Context(), list))
	live := map[string]string{}
	for _, object := range list.Items {
		if object.GetDeletionTimestamp() == nil {
			live[object.GetNamespace()+"/"+object.GetName()] = string(object.GetUID())
		}
	}
	return live
}

func (l *lateType) late(namespace string) *unstructured.Unstructured {
	object := instance(l.kind, "late")
	object.SetNamespace(namespace)
	object.SetAnnotations(map[string]string{engineName + "/ready-when": "true"})
	return object
}

func TestTheScopeOfATypeThatComesLaterDecidesWhereItsObjectsAre(t *testing.T) {
	t.Parallel()
	tests := []struct {
		kind, scope string
		namespaced  bool // what the manifest says
		want        func(namespace string) string
	}{
		{"Latea", "Namespaced", false, func(namespace string) string { return namespace + "/late" }},
		{"Lateb", "Namespaced", true, func(namespace string) string { return namespace + "/late" }},
		{"Latec", "Cluster", false, func(string) string { return "/late" }},
		{"Lated", "Cluster", true, func(string) string { return "/late" }},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s for an object with a namespace: %t", test.scope, test.namespaced), func(t *testing.T) {
			l := newLateType(t, test.kind)
			l.uninstall()
			object := l.late("")
			if test.namespaced {
				object.SetNamespace(l.namespace)
			}
			l.await(object)
			l.install(test.scope)
			l.installed(object)
			want := []string{test.want(l.namespace)}
			before := l.live()
			if !slices.Equal(l.recorded(), want) || len(before) != 1 || before[want[0]] == "" {
				t.Fatalf("on record are %v, and there are %v, want %v", l.recorded(), before, want)
			}
			l.installed(object)
			if after := l.live(); after[want[0]] != before[want[0]] {
				t.Errorf("it was created anew: %v, %v", before, after)
			}
			l.installed(config("other", "1"))
			if left := l.live(); len(left) > 0 || len(l.recorded()) > 0 {
				t.Errorf("left are %v, on record %v", left, l.recorded())
			}
		})
	}
}

func TestATypeThatReappearsWithAnotherScopeMovesItsObjects(t *testing.T) {
	t.Parallel()
	for _, scopes := range [][2]string{{"Namespaced", "Cluster"}, {"Cluster", "Namespaced"}} {
		t.Run(scopes[0]+" to "+scopes[1], func(t *testing.T) {
			l := newLateType(t, "Rescoped"+strings.ToLower(scopes[0][:1]))
			l.install(scopes[0])
			object := l.late(l.namespace)
			l.untilApplied(object)
			first := l.recorded()
			l.install(scopes[1])
			l.until("the second one", func() bool {
				outcome, err := l.apply(object)
				return err == nil && outcome.Done() && !slices.Equal(l.recorded(), first)
			})
			live := l.live()
			if got := l.recorded(); len(got) != 1 || len(live) != 1 || live[got[0]] == "" {
				t.Errorf("on record are %v, and there are %v", got, live)
			}
		})
	}
}

func TestTwoObjectsThatTheScopeOfATypeMakesOneAreAMistakeAndNothingIsLost(t *testing.T) {
	l := newLateType(t, "Twin")
	l.uninstall()
	objects := []client.Object{l.late(l.namespace), l.late("default")}
	l.await(objects...)
	before := l.recorded()
	l.install("Cluster")
	l.until("the mistake", func() bool {
		_, err := l.apply(objects...)
		_, invalid := errors.AsType[*reconciler.InvalidError](err)
		return invalid && strings.Contains(err.Error(), "late")
	})
	if live := l.live(); len(live) > 0 || !slices.Equal(before, l.recorded()) {
		t.Errorf("there are %v, on record are %v, before %v", live, l.recorded(), before)
	}
	l.installed(objects[0])
	if live := l.live(); len(live) != 1 || live["/late"] == "" || !slices.Equal(l.recorded(), []string{"/late"}) {
		t.Errorf("there are %v, on record are %v", live, l.recorded())
	}
}

// What is on record under a key that its type does not have any more is not mistaken for
// what others have under the key that it has now.
func TestAnObjectOfAnotherOwnerIsNotMistakenForOneOfAnotherScope(t *testing.T) {
	t.Parallel()
	for i, test := range []struct {
		scope          string
		made, deleting bool
	}{
		{"Cluster", true, true}, {"Cluster", true, false}, {"Cluster", false, true}, {"Cluster", false, false},
		{"Namespaced", true, false}, {"Namespaced", false, true},
	} {
		t.Run(fmt.Sprintf("%s, made %t, deleting %t", test.scope, test.made, test.deleting), func(t *testing.T) {
			t.Parallel() // each has a type of its own, and waits for the server
			l := newLateType(t, fmt.Sprintf("Inner%c", 'a'+i))
			former, ours, theirs := "Namespaced", l.late(l.namespace), l.late("")
			if test.scope == "Namespaced" {
				former, ours, theirs = "Cluster", l.late(""), l.late(l.namespace)
			}
			if test.made {
				l.install(former)
				l.untilApplied(ours)
			} else {
				l.await(ours)
			}
			l.install(test.scope)
			// A client keeps the scope that it read first, and the server may still name the former one.
			l.until("their object", func() bool { return newTarget(t).Client().Create(t.Context(), theirs.DeepCopy()) == nil })
			before := l.live()
			l.until("ours to be dropped", func() bool {
				if test.deleting {
					outcome, err := l.delete()
					return err == nil && outcome.Done()
				}
				outcome, err := l.apply(config("other", "1"))
				return err == nil && outcome.Done()
			})
			if after := l.live(); len(after) != 1 || fmt.Sprint(after) != fmt.Sprint(before) || len(l.recorded()) > 0 {
				t.Errorf("there are %v, before %v; on record are %v", after, before, l.recorded())
			}
		})
	}
}

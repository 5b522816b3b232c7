// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"strings"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/test/bench/operator"
	"github.com/corbel-run/corbel/test/bench/subject"
)

// good is an outcome that nothing is wrong with.
func good() *Outcome {
	line := func(heap uint64, goroutines int) Line {
		return Line{Usage: subject.Usage{Heap: heap, Goroutines: goroutines}}
	}
	rest := line(0, 0)
	rest.Requests = map[string]int{"GET loads": 200, "GET secrets": 1}
	return &Outcome{Early: line(100<<20, 50), Late: line(109<<20, 60), Rest: rest, Audited: 1}
}

func TestEachConditionIsChecked(t *testing.T) {
	if o := good(); !o.Holds() {
		t.Fatalf("a good run does not hold:\n%s", o)
	}
	for name, spoil := range map[string]func(*Outcome){
		"goroutines":          func(o *Outcome) { o.Late.Goroutines = 61 },
		"the heap":            func(o *Outcome) { o.Late.Heap = 111 << 20 },
		"no request for a":    func(o *Outcome) { o.Rest.Requests["LIST configmaps"] = 1 },
		"no write":            func(o *Outcome) { o.Rest.Requests["PATCH loads/status"] = 1 },
		"every write was the": func(o *Outcome) { o.Audited = 0 },
	} {
		o := good()
		spoil(o)
		var failed []string
		for _, condition := range o.Conditions() {
			if !condition.Holds {
				failed = append(failed, condition.Name)
			}
		}
		if len(failed) != 1 || !strings.Contains(failed[0], name) || o.Holds() {
			t.Errorf("spoiling %q fails %q", name, failed)
		}
		if !strings.Contains(o.String(), "FAILED  "+failed[0]) {
			t.Errorf("the report does not contain %q:\n%s", name, o)
		}
	}
}

func TestTheOracleComparesComponentsWithWhatThereIs(t *testing.T) {
	meta := func(namespace, name, version string) metav1.ObjectMeta {
		return metav1.ObjectMeta{Namespace: namespace, Name: name, UID: "u", ResourceVersion: version}
	}
	load := operator.Load{ObjectMeta: meta("soak", "a", "1"), Spec: operator.LoadSpec{Objects: 3, All: "1", One: "2", Away: true}}
	s := &soak{namespace: "soak", others: map[types.NamespacedName]string{
		{Namespace: "soak", Name: "changed"}: "u 1", {Namespace: "soak", Name: "gone"}: "u 1", {Namespace: "soak", Name: "same"}: "u 1",
	}}
	w := &world{loads: []operator.Load{load}, objects: map[types.NamespacedName]corev1.ConfigMap{}}
	for _, object := range []corev1.ConfigMap{
		{ObjectMeta: meta("soak", "a-0", "1"), Data: map[string]string{"all": "1", "one": "old"}},
		{ObjectMeta: meta("soak-a", "a-1", "1"), Data: map[string]string{"all": "1"}},
		{ObjectMeta: meta("soak", "a-3", "1")},
		{ObjectMeta: meta("soak", "changed", "2")},
		{ObjectMeta: meta("soak", "same", "1")},
	} {
		w.objects[types.NamespacedName{Namespace: object.Namespace, Name: object.Name}] = object
	}
	for _, name := range []string{"soak", "soak-a", "soak-b", "soak-deleted-0"} {
		w.namespaces = append(w.namespaces, corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	}
	w.jobs = []batchv1.Job{{ObjectMeta: meta("soak", "b", "1")}}
	got := s.check(w).all()
	for i, want := range []string{
		"lost: ConfigMap soak/a-2", "stolen: ConfigMap soak/", "stolen: ConfigMap soak/", "left over: ConfigMap soak/a-3", "left over: Namespace soak-b",
		"not at rest: component soak/a,", "not at rest: ConfigMap soak/a-0 holds", "not at rest: Job soak/b",
	} {
		if len(got) != 8 || !strings.HasPrefix(got[i], want) {
			t.Fatalf("finding %d is not %q in %q", i, want, got)
		}
	}
}

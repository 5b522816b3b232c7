// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/corbel-run/corbel/test/check"
)

// BenchmarkNext measures one plan for components of different sizes: when
// nothing exists, when nothing is to be done, and when everything is to be deleted.
// Ten times the objects should take at most twelve times as long.
func BenchmarkNext(b *testing.B) {
	shapes := []struct {
		name  string
		input func(size int) Input
	}{
		{"install", func(size int) Input { return benchDriver(size).input() }},
		{"rest", func(size int) Input { return installed(b, size).input() }},
		{"deletion", func(size int) Input {
			d := installed(b, size)
			d.cause = Deleting
			return d.input()
		}},
	}
	for _, shape := range shapes {
		for _, size := range []int{100, 1_000, 10_000} {
			in := shape.input(size)
			b.Run(fmt.Sprintf("%s/%d", shape.name, size), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if _, err := Next(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

// benchDriver wants objects of a mixed component: ten kinds of things in ten
// namespaces, in three waves.
func benchDriver(size int) *driver {
	d := newDriver()
	names := []string{"ConfigMap", "Secret", "Service", "ServiceAccount", "Deployment", "Job", "ClusterRole", "ConfigMap", "Deployment", "Foo"}
	definition, _ := keyOf("CustomResourceDefinition", "foos.example.com")
	d.desired = []Desired{desiredObject(definition, "1", defaultPolicies(), line{words: map[string]string{"defines": "Foo"}}.defines()...)}
	for i := range size - 1 {
		kind := names[i%len(names)]
		key := Key{Group: groups[kind], Kind: kind, Name: fmt.Sprintf("object-%d", i)}
		if kind != "ClusterRole" {
			key.Namespace = fmt.Sprintf("tenant-%d", i/len(names)%10)
		}
		set := defaultPolicies()
		set.Order.Apply, set.Order.Delete = int16(i%3), int16(i%2)
		d.desired = append(d.desired, desiredObject(key, "1", set))
	}
	slices.SortFunc(d.desired, func(a, b Desired) int { return a.Key.Compare(b.Key) })
	return d
}

// installed is the same when it is done.
func installed(b testing.TB, size int) *driver {
	b.Helper()
	d := benchDriver(size)
	for range 30 {
		d.world.progress()
		d.world.now = d.world.now.Add(time.Minute)
		p := check.Must(d.reconcile())(b)
		if p.Done() {
			return d
		}
	}
	b.Fatal("the installation does not end")
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// publishing adds outputs to the first objects of a generator: one is secret.
func publishing(generator manifests.Generator, outputs int) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters corbeltypes.Unstructurable) ([]client.Object, error) {
		objects, err := generator.Generate(ctx, namespace, name, parameters)
		for i := range outputs {
			annotation := reconcilerName + "/output.o" + strconv.Itoa(i)
			if i == 0 {
				annotation = reconcilerName + "/secret-output.o0"
			}
			objects[i].SetAnnotations(map[string]string{annotation: "self.?data.?late.orValue(self.data.all)"})
		}
		return objects, err
	})
}

// requiring makes objects, and a Bundle that requires them.
func (f *fixture) requiring(t testing.TB, n int) *Bundle {
	t.Helper()
	bundle := f.named("main")
	bundle.Spec.Values = map[string]string{"all": "1"}
	for i := range n {
		required := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "required-" + strconv.Itoa(i)}}
		if err := f.Create(t.Context(), required); err != nil {
			t.Fatal(err)
		}
		bundle.Spec.Requires = append(bundle.Spec.Requires, component.Requirement{APIVersion: "v1", Kind: "ConfigMap", Name: required.Name})
	}
	if err := f.Create(t.Context(), bundle); err != nil {
		t.Fatal(err)
	}
	return bundle
}

// TestRequestsOfOutputsAndRequirements counts what outputs and requirements cost beside the same component without them.
func TestRequestsOfOutputsAndRequirements(t *testing.T) {
	const n = 100
	run := func(outputs, requirements int) (install, rest, change counts) {
		f := newFixture(t)
		traffic, renderings := &traffic{skips: isInformer}, atomic.Int64{}
		bundle := f.requiring(t, requirements)
		o := f.startWith(t, publishing(configMaps(n, &renderings), outputs), traffic.wrap)
		f.ready(t, bundle)
		install = traffic.drain()
		for range 3 {
			if err := o.reconciler.Trigger(bundle.Namespace, bundle.Name); err != nil {
				t.Fatal(err)
			}
		}
		o.reconciles(t, bundle, &renderings)
		rest = traffic.drain()
		if outputs > 0 {
			if got := len(bundle.Status.Outputs); got != outputs-1 {
				t.Errorf("%d outputs, want %d", got, outputs-1)
			}
			f.setLate(t, 1, "late")
			f.published(t, bundle, 1, "late")
			change = traffic.drain()
		}
		t.Logf("%d outputs and %d requirements: install %s; two reconciles %s; a changed output %s", outputs, requirements, install.text(1), rest.text(1), change.text(1))
		return install, rest, change
	}
	run(0, 0) // the first operator of a control plane creates the digest key
	without, _, _ := run(0, 0)
	with, rest, change := run(64, 10)
	// At installation, each requirement is read, the status is committed once more, and the Secret is created.
	if more := with.reads + with.writes - without.reads - without.writes; more > 10+2 {
		t.Errorf("the installation takes %d requests more", more)
	}
	if rest.writes > 0 {
		t.Errorf("at rest it wrote: %s", rest.text(1))
	}
	if change.writes != 1 || change.reads > 2 {
		t.Errorf("a changed output takes %s", change.text(1))
	}
}

// setLate sets a key that the manifest of a ConfigMap does not have.
func (f *fixture) setLate(t testing.TB, i int, value string) {
	t.Helper()
	live := f.configMap(t, "config-"+strconv.Itoa(i))
	live.Data["late"] = value
	if err := f.Update(t.Context(), live); err != nil {
		t.Fatal(err)
	}
}

// published waits until an output has a value.
func (f *fixture) published(t testing.TB, bundle *Bundle, i int, value string) {
	t.Helper()
	eventuallyEvery(t, time.Millisecond, "the output to be published", func(ctx context.Context) error {
		if err := f.Get(ctx, client.ObjectKeyFromObject(bundle), bundle); err != nil {
			return err
		}
		if got := bundle.Status.Outputs["o"+strconv.Itoa(i)]; got != value {
			return fmt.Errorf("the output is %q, want %q", got, value)
		}
		return nil
	})
}

// BenchmarkOutput measures how long the status takes to follow a changed object, of a component with 1,000 objects and 64 outputs.
func BenchmarkOutput(b *testing.B) {
	f := newFixture(b)
	var renderings atomic.Int64
	bundle := f.requiring(b, 0)
	f.startWith(b, publishing(configMaps(1000, &renderings), 64), nil)
	f.ready(b, bundle)
	var times []time.Duration
	for b.Loop() {
		i, value := 1+len(times)%63, "v"+strconv.Itoa(len(times)) // another object each time: changes of one object are slowed
		f.setLate(b, i, value)
		start := time.Now()
		f.published(b, bundle, i, value)
		times = append(times, time.Since(start))
	}
	slices.Sort(times)
	b.ReportMetric(float64(times[len(times)/2].Microseconds())/1000, "median-ms")
}

// BenchmarkStorm measures the processor time of the process while other clients change 200 objects of a component, without and with outputs.
func BenchmarkStorm(b *testing.B) {
	for _, outputs := range []int{0, 64} {
		b.Run(strconv.Itoa(outputs)+" outputs", func(b *testing.B) {
			f := newFixture(b)
			var renderings atomic.Int64
			bundle := f.requiring(b, 0)
			f.startWith(b, publishing(configMaps(1000, &renderings), outputs), nil)
			f.ready(b, bundle)
			used := processorTime(b)
			round := 0
			for b.Loop() {
				round++
				for i := range 200 {
					f.setLate(b, i, strconv.Itoa(round))
				}
			}
			b.ReportMetric(float64((processorTime(b)-used).Milliseconds())/float64(b.N), "cpu-ms/round")
		})
	}
}

func processorTime(t testing.TB) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

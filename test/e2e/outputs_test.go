// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	corbeltypes "github.com/corbel-run/corbel/pkg/types"
)

// addOutputs adds outputs to the first objects of a generator: one is secret.
func addOutputs(generator manifests.Generator, outputs int) manifests.Generator {
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

// outputScenarios are about a component with outputs, and about a component that gets its manifests of an output of another one.
var outputScenarios = []*scenario{
	{
		name:      "change outputs",
		installed: map[string][]string{"main": withOutputs("1")},
		desired:   map[string][]string{"main": withOutputs("2")},
		owned:     []string{"ConfigMap $NS/source", "Secret $NS/login"},
		after: func(t testing.TB, f *fixture) {
			eventually(t, "the outputs of the objects", func(ctx context.Context) error { return f.checkOutputs(ctx, "main") })
		},
	},
	{
		name: "change an output that another component requires",
		settings: func(name string, spec *BundleSpec) {
			if name == "main" {
				spec.Requires = []component.Requirement{{
					APIVersion: widget.GroupVersion.String(), Kind: "Widget", Name: "other", Inputs: map[string]string{"manifests": "manifests"},
				}}
			}
		},
		installed: map[string][]string{"main": {configMap("a", "1")}, "other": publishing(configMap("a", "1"))},
		desired:   map[string][]string{"main": {configMap("a", "2")}, "other": publishing(configMap("a", "2"))},
		history:   []string{"2 Ready", "1 Ready"}, // main has one revision for each value of the output
		owned:     []string{"ConfigMap $NS/a", "ConfigMap $NS/manifests"},
	},
}

// publishing is an object with a manifest as an output.
func publishing(manifest string) []string {
	return []string{configMap("manifests", manifest, "output.manifests", "self.data.version")}
}

// TestRequestsOfOutputsAndRequirements counts what outputs and requirements cost beside the same component without them.
func TestRequestsOfOutputsAndRequirements(t *testing.T) {
	const n = 100
	run := func(outputs, requirements int) (install, rest, change counts) {
		f := newFixture(t)
		traffic, renderings := &traffic{skips: isInformer}, atomic.Int64{}
		bundle := f.requiring(t, requirements)
		o := f.startWith(t, addOutputs(configMaps(n, &renderings), outputs), traffic.wrap)
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
			f.setLate(t, "config-1", "late")
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
func (f *fixture) setLate(t testing.TB, name, value string) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"data":{"late":`+strconv.Quote(value)+`}}`))
	if err := f.Patch(t.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: name}}, patch); err != nil {
		t.Fatal(err)
	}
}

// withOutputs are objects with outputs of the component; two of them are secret.
func withOutputs(version string) []string {
	return []string{
		configMap("source", version, "output.version", "self.data.version", "output.late", "self.?data.?late", "secret-output.late-secret", "'x-' + self.data.?late.orValue('')"),
		secret("login", version, "output.password", "self.data.version"),
	}
}

// checkOutputs returns an error if a component has not published exactly the outputs of the objects of withOutputs. Without such objects,
// or without the component, there is no Secret of outputs.
func (f *fixture) checkOutputs(ctx context.Context, name string) error {
	bundle, source, login, published := f.named(name), &corev1.ConfigMap{}, &corev1.Secret{}, &corev1.Secret{}
	read := func(object client.Object, name string) error {
		return client.IgnoreNotFound(f.Get(ctx, client.ObjectKey{Namespace: f.namespace, Name: name}, object))
	}
	err := errors.Join(read(bundle, name), read(source, "source"), read(login, "login"), read(published, vocabulary.OutputsSecret(name)))
	if err != nil {
		return err
	}
	if bundle.UID == "" { // the creation of an object may have come too late
		source, login = &corev1.ConfigMap{}, &corev1.Secret{}
	}
	plain, secret := map[string]string{}, map[string][]byte{}
	if late, is := source.Data["late"]; is {
		plain["late"] = late
	}
	if source.UID != "" {
		plain["version"], secret["late-secret"] = source.Data["version"], []byte("x-"+source.Data["late"])
	}
	if login.UID != "" {
		secret["password"] = login.Data["version"]
	}
	got := map[string]any{"outputs": bundle.Status.Outputs, "names": bundle.Status.SecretOutputs, "Secret": published.Data}
	want := map[string]any{"outputs": plain, "names": slices.Sorted(maps.Keys(secret)), "Secret": secret}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		return errors.New("outputs of component " + name + " (-of the objects +published):\n" + diff)
	}
	if published.UID != "" && (len(secret) == 0 || len(published.OwnerReferences) != 1 || published.OwnerReferences[0].UID != bundle.UID) {
		return fmt.Errorf("the Secret of the outputs of component %s has the owners %v", name, published.OwnerReferences)
	}
	return nil
}

// published waits until an output has a value. It does not read more often, because reads of a large component delay the operator.
func (f *fixture) published(t testing.TB, bundle *Bundle, i int, value string) {
	t.Helper()
	eventuallyEvery(t, 30*time.Millisecond, "the output to be published", func(ctx context.Context) error {
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
	f.startWith(b, addOutputs(configMaps(1000, &renderings), 64), nil)
	f.ready(b, bundle)
	var times []time.Duration
	for b.Loop() {
		i, value := 1+len(times)%63, "v"+strconv.Itoa(len(times)) // another object each time: changes of one object are slowed
		f.setLate(b, "config-"+strconv.Itoa(i), value)
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
			f.startWith(b, addOutputs(configMaps(1000, &renderings), outputs), nil)
			f.ready(b, bundle)
			used := processorTime(b)
			round := 0
			for b.Loop() {
				round++
				for i := range 200 {
					f.setLate(b, "config-"+strconv.Itoa(i), strconv.Itoa(round))
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

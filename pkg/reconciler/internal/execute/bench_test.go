// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/wire"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

const (
	reconciler = "corbel.example.com"
	ownerID    = "owner"
)

var ownerRef = plan.OwnerRef{Group: "example.com", Kind: "Shop", Namespace: "shop", Name: "main", UID: "uid"}

// bench is an executor on an API server, behind a gate for its requests.
type bench struct {
	t        *testing.T
	target   cluster.Target
	observer *observe.Observer
	executor *execute.Executor
	gate     *wire.Gate
}

func newBench(t *testing.T) *bench {
	t.Helper()
	return benchOn(t, env.Shared(t).Config())
}

func benchOn(t *testing.T, config *rest.Config) *bench {
	t.Helper()
	b := &bench{t: t, gate: &wire.Gate{}}
	config.Wrap(b.gate.Wrap)
	target := check.Must(cluster.New(config, cluster.Options{RequestTimeout: 5 * time.Second}))(t)
	t.Cleanup(target.Close)
	b.target = target
	b.observer = observe.New(target, observe.Options{Name: reconciler, FieldOwner: "corbel", Parallelism: 8})
	b.executor = execute.New(target, b.observer, execute.Options{Name: reconciler, FieldOwner: "corbel", Parallelism: 8})
	return b
}

// requests returns what was sent since the last call.
func (b *bench) requests() []string {
	sent := b.gate.Requests()
	b.gate.Aim(0, false, nil)
	return sent
}

var counter atomic.Int64

func unique(prefix string) string { return fmt.Sprintf("%s-%d", prefix, counter.Add(1)) }

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	object := &unstructured.Unstructured{}
	check.NoError(t, object.UnmarshalJSON(content))
	return object
}

// desired makes a desired object of YAML, with our label and annotation.
func (b *bench) desired(text string, update v1alpha1.UpdatePolicy) *plan.Desired {
	b.t.Helper()
	manifest := parse(b.t, text)
	labels, annotations := manifest.GetLabels(), manifest.GetAnnotations()
	if labels == nil {
		labels = map[string]string{}
	}
	if annotations == nil {
		annotations = map[string]string{}
	}
	labels[reconciler+"/owner-id"] = ownerID
	annotations[reconciler+"/owner"] = ownerRef.String()
	manifest.SetLabels(labels)
	manifest.SetAnnotations(annotations)
	gvk := manifest.GroupVersionKind()
	return &plan.Desired{
		Key:      plan.Key{Group: gvk.Group, Kind: gvk.Kind, Namespace: manifest.GetNamespace(), Name: manifest.GetName()},
		Version:  gvk.Version,
		Policies: policy.Set{Update: update},
		Manifest: manifest,
	}
}

// step is a step on an object as it was observed; the zero observation demands absence.
func step(verb plan.Verb, d *plan.Desired, live plan.Observation) plan.Step {
	return plan.Step{
		Verb: verb, Key: d.Key, Version: d.Version, Desired: d,
		UID: live.UID, ResourceVersion: live.ResourceVersion, Ownership: live.Ownership, Finalizers: live.Finalizers,
	}
}

// seen is a step as the planner makes it.
func (b *bench) seen(verb plan.Verb, d *plan.Desired, live plan.Observation) plan.Step {
	s := step(verb, d, live)
	s.Carried, s.Reclaims, s.Scaled = live.Carried, live.Reclaims, live.Scaled != nil
	return s
}

// run executes one step.
func (b *bench) run(s plan.Step) plan.Result {
	b.t.Helper()
	results := b.executor.Run(b.t.Context(), []plan.Step{s})
	if len(results) != 1 {
		b.t.Fatalf("%s %s: got %d results", s.Verb, s.Key, len(results))
	}
	return results[0]
}

// must executes one step that has to succeed and returns what is known then.
func (b *bench) must(s plan.Step) plan.Observation {
	b.t.Helper()
	result := b.run(s)
	if result.Err != nil || result.Blocked != "" {
		b.t.Fatalf("%v, blocked: %q", result.Err, result.Blocked)
	}
	return result.Observation
}

// observe reads an object.
func (b *bench) observe(d *plan.Desired) plan.Observation {
	b.t.Helper()
	observed := check.Must(b.observer.Observe(b.t.Context(), []observe.Request{{Key: d.Key, Version: d.Version, Desired: d}}))(b.t)
	return observed[d.Key]
}

func (b *bench) resource(d *plan.Desired) cluster.Resource {
	b.t.Helper()
	return check.Must(b.target.Types().Resolve(b.t.Context(), d.Key.GroupKind().WithVersion(d.Version)))(b.t)
}

func (b *bench) live(d *plan.Desired) *unstructured.Unstructured {
	b.t.Helper()
	return check.Must(b.target.Objects().Get(b.t.Context(), b.resource(d), d.Key.Namespace, d.Key.Name))(b.t)
}

// otherClient patches the object as another field manager.
func (b *bench) otherClient(d *plan.Desired, patch string) *unstructured.Unstructured {
	b.t.Helper()
	content := check.Must(yaml.YAMLToJSON([]byte(patch)))(b.t)
	return check.Must(b.target.Objects().Patch(b.t.Context(), b.resource(d), d.Key.Namespace, d.Key.Name, types.MergePatchType, content, "other-client"))(b.t)
}

// namespace creates a namespace of the test's own.
func (b *bench) namespace() string {
	b.t.Helper()
	name := unique("ns")
	b.create(`{apiVersion: v1, kind: Namespace, metadata: {name: ` + name + `}}`)
	return name
}

// create creates an object that is not ours.
func (b *bench) create(text string) *unstructured.Unstructured {
	b.t.Helper()
	object := parse(b.t, text)
	resource := check.Must(b.target.Types().Resolve(b.t.Context(), object.GroupVersionKind()))(b.t)
	return check.Must(b.target.Objects().Create(b.t.Context(), resource, object, "other-client"))(b.t)
}

// eventually polls until the condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(2 * time.Minute)
	for !holds() {
		if time.Now().After(deadline) {
			t.Fatalf("%s: not within 30 seconds", what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// creates are steps that create ConfigMaps, one for each stage given.
func (b *bench) creates(namespace string, stages ...int) []plan.Step {
	var steps []plan.Step
	for _, stage := range stages {
		s := step(plan.VerbCreate, b.desired(configMap(namespace, unique("map")), v1alpha1.UpdatePolicyReplace), plan.Observation{})
		s.Stage = stage
		steps = append(steps, s)
	}
	return steps
}

func keys(results []plan.Result) string {
	var names []string
	for _, result := range results {
		names = append(names, result.Step.Key.Name)
	}
	return strings.Join(names, " ")
}

func TestAFailureHoldsBackLaterStagesOnly(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 1, 1, 1, 2)
	steps[2].Desired.Manifest.Object["data"] = "no map"
	results := b.executor.Run(t.Context(), steps)
	if keys(results) != keys([]plan.Result{{Step: steps[0]}, {Step: steps[1]}, {Step: steps[2]}, {Step: steps[3]}}) {
		t.Fatalf("got %s", keys(results))
	}
	for i, result := range results {
		if failed := result.Err != nil; failed != (i == 2) {
			t.Errorf("step %d: got %v", i, result.Err)
		}
	}
	if text := results[2].Err.Error(); !strings.HasPrefix(text, "create "+steps[2].Key.String()+": ") {
		t.Errorf("got %q", text)
	}
}

func TestTheEndOfTheContextEndsTheRun(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	b.gate.Aim(5, false, func() error {
		cancel()
		return nil
	})
	results := b.executor.Run(ctx, steps)
	if len(results) >= len(steps)-1 {
		t.Errorf("all %d steps were started", len(results))
	}
	interrupted := 0
	for _, result := range results {
		if result.Err == nil {
			continue
		}
		interrupted++
		if !errors.Is(result.Err, context.Canceled) || result.Observation.Existence != plan.Unknown {
			t.Errorf("got %+v", result)
		}
	}
	if interrupted == 0 {
		t.Error("no step was interrupted")
	}
	cancel()
	if results := b.executor.Run(ctx, steps); len(results) != 0 {
		t.Errorf("after the end: got %s", keys(results))
	}
}

func TestAMistakeOfOursFailsOneStepOnly(t *testing.T) {
	b := newBench(t)
	steps := b.creates(b.namespace(), 0, 0, 0)
	steps[0].Desired.Manifest = nil
	steps[1].Desired.Manifest.Object["data"] = map[string]any{"a": func() {}} // nothing that JSON knows
	unknownVerb := steps[2]
	unknownVerb.Verb = "dance"
	for _, result := range b.executor.Run(t.Context(), append(steps, unknownVerb)) {
		wantErr := result.Step.Key != steps[2].Key || result.Step.Verb == "dance"
		if failed := result.Err != nil; failed != wantErr {
			t.Errorf("%s %s: got %v", result.Step.Verb, result.Step.Key, result.Err)
		}
	}
	b.gate.Aim(1, false, func() error { panic("a mistake") })
	result := b.run(steps[2])
	check.Fails(t, result.Err, "internal error of the operator")
}

func TestAServerThatDoesNotAnswerIsNotAskedForEachStep(t *testing.T) {
	b := benchOn(t, &rest.Config{Host: "http://127.0.0.1:1"}) // nothing listens there
	var stages [200]int
	steps := b.creates("default", stages[:]...)
	results := b.executor.Run(t.Context(), steps)
	if len(results) == 0 || len(results) > 50 {
		t.Errorf("%d of %d steps were tried", len(results), len(steps))
	}
	for _, result := range results {
		if result.Err == nil || result.Observation.Existence != plan.Unknown {
			t.Errorf("got %+v", result)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/env"
)

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// status writes the status of an object, as its controller would.
func (b *bench) status(object *unstructured.Unstructured, status string) {
	b.t.Helper()
	content, err := yaml.YAMLToJSON([]byte("{status: " + status + "}"))
	if err != nil {
		b.t.Fatal(err)
	}
	if err := b.Status().Patch(b.t.Context(), b.in(object.DeepCopy()), client.RawPatch(types.MergePatchType, content)); err != nil {
		b.t.Fatal(err)
	}
}

// waits applies, and expects the wait for the one object that is not settled.
func (b *bench) waits(reason reconciler.WaitReason, message string, objects ...client.Object) {
	b.t.Helper()
	outcome, err := b.apply(objects...)
	for _, wait := range outcome.Waiting {
		if wait.Reason == reason && strings.Contains(wait.Message, message) {
			return
		}
	}
	b.t.Errorf("got %v, waiting for %v, want %s %q", err, outcome.Waiting, reason, message)
}

const work = `
apiVersion: batch/v1
kind: Job
metadata: {name: work}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}`

func TestAJobHoldsUpTheNextWaveUntilItIsComplete(t *testing.T) {
	b := newBench(t)
	job, after := parse(t, work), config("after", "1", "apply-order", "1")
	b.waits(reconciler.WaitReady, "is not started yet", job, after)
	b.status(job, `{startTime: "2026-01-01T00:00:00Z", active: 1}`)
	b.waits(reconciler.WaitReady, "0 of 1 completions", job, after)
	if b.get("after") != nil {
		t.Fatal("the next wave was applied")
	}
	b.status(job, `{active: 0, succeeded: 1, completionTime: "2026-01-01T00:00:01Z", uncountedTerminatedPods: {}, conditions: [
		{type: SuccessCriteriaMet, status: "True", lastTransitionTime: "2026-01-01T00:00:01Z"},
		{type: Complete, status: "True", lastTransitionTime: "2026-01-01T00:00:01Z"}]}`)
	b.mustApply(job, after)
}

func TestAFailedJobSaysWhy(t *testing.T) {
	b := newBench(t)
	job := parse(t, work)
	b.waits(reconciler.WaitReady, "is not started yet", job)
	failed := `status: "True", reason: BackoffLimitExceeded, message: has reached its limit, lastTransitionTime: "2026-01-01T00:00:01Z"}`
	b.status(job, `{startTime: "2026-01-01T00:00:00Z", failed: 7, uncountedTerminatedPods: {}, conditions: [{type: FailureTarget, `+failed+`, {type: Failed, `+failed+`]}`)
	b.waits(reconciler.WaitFailed, "BackoffLimitExceeded: has reached its limit", job)
}

func TestAnAPIServiceHoldsUpTheNextWaveUntilItIsAvailable(t *testing.T) {
	b := newBench(t)
	service := parse(t, `
apiVersion: apiregistration.k8s.io/v1
kind: APIService
metadata: {name: v1.unavailable.example.com}
spec: {group: unavailable.example.com, version: v1, groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: {namespace: default, name: nowhere}}`)
	after := config("after", "1", "apply-order", "1")
	b.until("the server to report its readiness", func() bool {
		outcome, err := b.apply(service, after)
		if err != nil || outcome.Done() {
			t.Fatalf("got %v, done: %v", err, outcome.Done())
		}
		return strings.Contains(outcome.Waiting[0].Message+outcome.Waiting[len(outcome.Waiting)-1].Message, "is not available: ServiceNotFound")
	})
	if b.get("after") != nil {
		t.Error("the next wave was applied")
	}
	b.until("the deletion", func() bool {
		outcome, err := b.delete()
		return err == nil && outcome.Done()
	})
}

func TestAnExpressionForATypeDecidesWhenItsObjectsAreReady(t *testing.T) {
	b := newBench(t)
	b.interpose(t, reconciler.ReconcilerOptions{ReadyWhen: []reconciler.ReadyWhen{
		{Type: reconciler.TypeInfo{Kind: "ConfigMap"}, Expression: "self.data.value == 'go'"},
		{Type: reconciler.TypeInfo{Group: "*", Kind: "*"}, Expression: "false"},
	}})
	b.waits(reconciler.WaitReady, "ready-when is false: self.data.value == 'go'", config("a", "stop"))
	b.mustApply(config("a", "go"))
	// What the object itself says takes precedence.
	b.mustApply(config("a", "stop", "ready-when", "self.data.value == 'stop'"))
	b.waits(reconciler.WaitReady, "ready-when is false: false", parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}}`))
}

func TestMistakesInTheOptionsAreReportedTogether(t *testing.T) {
	target, err := cluster.New(env.Shared(t).Config(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	_, err = reconciler.NewReconciler(engineName, target, reconciler.ReconcilerOptions{Parallelism: -1, ReadyWhen: []reconciler.ReadyWhen{
		{Type: reconciler.TypeInfo{Group: "example.com", Kind: "Foo"}, Expression: "self.status.phase =="},
		{Expression: "1"},
		{Type: reconciler.TypeInfo{Group: "example.com", Kind: "Bar"}},
	}})
	for _, want := range []string{
		"ReadyWhen of the type Foo.example.com: ready-when \"self.status.phase ==\": character", "the kind is missing", "gives int, not a bool",
		"ReadyWhen of the type Bar.example.com: the expression is missing", "parallelism -1",
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}

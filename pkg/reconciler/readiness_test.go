// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
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

// waits applies, and expects the wait for the one object that is not settled.
func (b *bench) waits(reason report.WaitReason, message string, objects ...client.Object) {
	b.t.Helper()
	outcome, err := b.apply(objects...)
	for _, wait := range outcome.Waiting {
		if wait.Reason == reason && strings.Contains(wait.Message, message) {
			return
		}
	}
	b.t.Errorf("got %v, waiting for %v, want %s %q", err, outcome.Waiting, reason, message)
}

func TestAnExpressionForATypeDecidesWhenItsObjectsAreReady(t *testing.T) {
	b := newBench(t)
	b.interpose(t, reconciler.ReconcilerOptions{ReadyWhen: []reconciler.ReadyWhen{
		{Type: reconciler.TypeInfo{Kind: "ConfigMap"}, Expression: "self.data.value == 'go'"},
		{Type: reconciler.TypeInfo{Group: "*", Kind: "*"}, Expression: "false"},
	}})
	b.waits(report.WaitReady, "ready-when is false: self.data.value == 'go'", config("a", "stop"))
	b.mustApply(config("a", "go"))
	// What the object itself says takes precedence.
	b.mustApply(config("a", "stop", "ready-when", "self.data.value == 'stop'"))
	b.waits(report.WaitReady, "ready-when is false: false", parse(t, `{apiVersion: v1, kind: ServiceAccount, metadata: {name: s}}`))
}

func TestMistakesInTheOptionsAreReportedTogether(t *testing.T) {
	target, err := cluster.New(env.Shared(t).Config(), cluster.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(target.Close)
	_, err = reconciler.NewReconciler(engineName, reconciler.Target{Target: target}, reconciler.ReconcilerOptions{Parallelism: -1, ReadyWhen: []reconciler.ReadyWhen{
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

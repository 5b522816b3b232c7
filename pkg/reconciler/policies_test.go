// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/test/check"
)

func TestMissingNamespacesAreCreatedUnlessTheComponentOrTheOptionsSayOtherwise(t *testing.T) {
	create, dont := v1alpha1.MissingNamespacesPolicyCreate, v1alpha1.MissingNamespacesPolicyDoNotCreate
	for name, test := range map[string]struct {
		options, component v1alpha1.MissingNamespacesPolicy
		want               bool
	}{
		"the default is to create":                   {"", "", true},
		"the option forbids it":                      {dont, "", false},
		"the component forbids it":                   {"", dont, false},
		"the component allows it against the option": {dont, create, true},
	} {
		options := reconciler.ReconcilerOptions{}
		if test.options != "" {
			options.MissingNamespacesPolicy = &test.options
		}
		b, recorder := ownsRecorded(t, options)
		request := b.request(configIn("a", "more"), config("b", "1"))
		request.Policies.MissingNamespaces = test.component
		if _, err := b.engine.Apply(t.Context(), request); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		var created []string
		for _, sent := range recorder.Writes() {
			created = append(created, sent.Path)
		}
		if got := slices.Contains(created, "/api/v1/namespaces/more"); got != test.want || !slices.Contains(created, "/api/v1/namespaces/shop/configmaps") {
			t.Errorf("%s: created %v", name, created)
		}
	}
}

func parse(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	check.NoError(t, yaml.Unmarshal([]byte(text), &object.Object))
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
	_, err := reconciler.NewReconciler(engineName, reconciler.Target{Target: newTarget(t)}, reconciler.ReconcilerOptions{Parallelism: -1, ReadyWhen: []reconciler.ReadyWhen{
		{Type: reconciler.TypeInfo{Group: "example.com", Kind: "Foo"}, Expression: "self.status.phase =="},
		{Expression: "1"},
		{Type: reconciler.TypeInfo{Group: "example.com", Kind: "Bar"}},
	}})
	for _, want := range []string{
		"ReadyWhen of the type Foo.example.com: ready-when \"self.status.phase ==\": character", "the kind is missing", "gives int, not a bool",
		"ReadyWhen of the type Bar.example.com: the expression is missing", "parallelism -1",
	} {
		check.Fails(t, err, want)
	}
}

func TestAReapplyThatFindsNothingToChangeIsNoChangeOnTheServerAndIsReadyAllTheWay(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override", "recreate"} {
		t.Run("under "+policy, func(t *testing.T) {
			b := newBench(t)
			now := time.Now()
			b.interpose(t, reconciler.ReconcilerOptions{Now: func() time.Time { return now }})
			object := config("a", "1", "reapply-interval", "10m", "update-policy", policy)
			b.mustApply(object)
			before := b.get("a")
			now = now.Add(9 * time.Minute)
			if outcome := b.mustApply(object); len(outcome.Steps) > 0 {
				t.Errorf("steps %v before the interval has passed", outcome.Steps)
			}
			now = now.Add(2 * time.Minute)
			if outcome := b.mustApply(object); len(outcome.Steps) != 1 {
				t.Errorf("steps %v, want one write", outcome.Steps)
			}
			if after := b.get("a"); after.ResourceVersion != before.ResourceVersion || after.UID != before.UID {
				t.Errorf("version %s became %s", before.ResourceVersion, after.ResourceVersion)
			}
			if outcome := b.mustApply(object); len(outcome.Steps) > 0 {
				t.Errorf("steps %v right after the refresh", outcome.Steps)
			}
		})
	}
}

func TestIgnoredFieldsAreNeverWrittenAfterTheCreationAndTheirDriftIsNoDrift(t *testing.T) {
	for _, policy := range []string{"replace", "ssa-merge", "ssa-override"} {
		t.Run(policy, func(t *testing.T) {
			b := newBench(t)
			manifest := func(value, other string) client.Object {
				object := config("a", value, "update-policy", policy, "ignore-fields", "/data/value")
				object.Object["data"].(map[string]any)["other"] = other
				return object
			}
			b.mustApply(manifest("1", "1"))
			if got := b.get("a").Data["value"]; got != "1" {
				t.Errorf("value %q, want what the manifest creates", got)
			}
			b.change("a", func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
			if outcome := b.mustApply(manifest("1", "1")); len(outcome.Steps) > 0 {
				t.Errorf("steps %v for the drift of an ignored field", outcome.Steps)
			}
			b.mustApply(manifest("2", "2"))
			if got := b.get("a").Data; got["value"] != "by hand" || got["other"] != "2" {
				t.Errorf("data %v", got)
			}
		})
	}
}

func TestFieldsAreIgnoredByTypeAndLabels(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"), config("b", "1"))
	b.interpose(t, reconciler.ReconcilerOptions{IgnoreFields: []reconciler.IgnoreFields{
		{Type: reconciler.TypeInfo{Group: "*", Kind: "Secret"}, Paths: []string{"/data"}},
		{Type: reconciler.TypeInfo{Kind: "ConfigMap"}, Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"injected": "yes"}}, Paths: []string{"/data/value"}},
	}})
	labelled := config("a", "1")
	labelled.SetLabels(map[string]string{"injected": "yes"})
	b.mustApply(labelled, config("b", "1"))
	for _, name := range []string{"a", "b"} {
		b.change(name, func(c *corev1.ConfigMap) { c.Data["value"] = "by hand" })
	}
	outcome := b.mustApply(labelled, config("b", "1"))
	if a, b := b.get("a").Data["value"], b.get("b").Data["value"]; a != "by hand" || b != "1" || len(outcome.Steps) != 1 {
		t.Errorf("a has %q and b has %q after the steps %v; only b is to be repaired", a, b, outcome.Steps)
	}
	// Without the rule the manifest counts again.
	b.interpose(t, reconciler.ReconcilerOptions{})
	b.mustApply(labelled, config("b", "1"))
	if value := b.get("a").Data["value"]; value != "1" {
		t.Errorf("a has %q without a rule", value)
	}
}

func TestAComponentCannotManageWhatItStandsOn(t *testing.T) {
	b := newBench(t)
	object := func(version, kind, name string, spec map[string]any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": version, "kind": kind, "metadata": map[string]any{"name": name}, "spec": spec,
		}}
	}
	request := b.request(
		config("credentials", "1"),
		config("fine", "1"),
		object("apiregistration.k8s.io/v1", "APIService", "v1.apps", map[string]any{"group": "apps", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1)}),
		object("apiregistration.k8s.io/v1", "APIService", "v1beta1.metrics.k8s.io", map[string]any{"group": "metrics.k8s.io", "version": "v1beta1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1)}),
	)
	request.Protected = []report.Key{{Kind: "ConfigMap", Namespace: b.namespace, Name: "credentials"}}
	_, err := b.engine.Apply(t.Context(), request)
	if _, invalid := errors.AsType[*reconciler.InvalidError](err); !invalid {
		t.Fatalf("got %v, want an InvalidError", err)
	}
	check.Contains(t, err.Error(), "ConfigMap "+b.namespace+"/credentials: Release", "APIService v1.apps: ", `the group "apps"`)
	if strings.Contains(err.Error(), "metrics.k8s.io") || strings.Contains(err.Error(), "fine") {
		t.Errorf("the error names what is fine: %v", err)
	}
	if b.get("fine") != nil || b.records > 0 {
		t.Error("something was written or recorded")
	}
}

func TestTheOwnerIsNoDependentOfItself(t *testing.T) {
	b := newBench(t)
	request := b.request(config("me", "1"))
	request.Owner = reconciler.Owner{Kind: "ConfigMap", Namespace: b.namespace, Name: "me", UID: "1"}
	check.Fails(t, check.ErrorOf(b.engine.Apply(t.Context(), request)), "or is it")
}

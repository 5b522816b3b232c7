// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func requires(requirements ...component.Requirement) component.RequirementsSpec {
	return component.RequirementsSpec{Requires: requirements}
}

// comesToSay waits until the message of Ready has the text.
func (b *bed) comesToSay(text string) {
	b.Helper()
	b.comesTo(func() (string, bool) {
		state, reason, message := b.get().Status.GetState()
		return fmt.Sprintf("%s, %s: %s", state, reason, message), strings.Contains(message, text)
	})
}

func TestRequiredComponentIsWaitedForAndMissed(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{
		RequeueSpec: aDay, Values: map[string]string{"a": "1"},
		RequirementsSpec: requires(component.Requirement{APIVersion: "test.corbel.run/v1", Kind: "Widget", Name: "db"}),
	})
	b.start(b.manager)
	b.comesToSay("requires Widget " + b.namespace + "/db: it does not exist")
	b.wantNone("a")
	db := &widget.Widget{ObjectMeta: b.object("db"), Spec: widget.Spec{RequeueSpec: aDay, SuspensionSpec: component.SuspensionSpec{Suspend: true}}}
	b.check(b.client.Create(t.Context(), db))
	b.comesToSay("requires Widget " + b.namespace + "/db: not Ready: ")
	b.wantNone("a")
	b.check(b.client.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"suspend":false}}`))))
	started := time.Now()
	b.comesToBeReady()
	b.comesToHold("a", "1")
	if took := time.Since(started); took > 5*time.Second { // without a watch it takes RetryInterval
		t.Errorf("the component is ready %s after the one that it requires", took)
	}

	b.check(b.client.Delete(t.Context(), db))
	b.comesToSay("requires Widget " + b.namespace + "/db: it does not exist")
	b.check(b.client.Delete(t.Context(), must(b.read("a"))(t)))
	b.comesToHold("a", "1")
	if state, reason, _ := b.get().Status.GetState(); state != v1alpha1.StatePending || reason != vocabulary.ReasonRetrying || b.get().Status.Revision != 1 {
		t.Errorf("%s, %s", state, reason)
	}
	b.check(b.client.Delete(t.Context(), b.get()))
	b.comesTo(func() (string, bool) {
		return "the component is there", apierrors.IsNotFound(b.client.Get(t.Context(), b.key("main"), &widget.Widget{}))
	})
	b.wantNone("a")
}

// TestRequiredComponentPublishesWhatAnotherOneGets has one component with outputs, and one with the same as inputs.
func TestRequiredComponentPublishesWhatAnotherOneGets(t *testing.T) {
	output := func(name string, secret bool) component.Output {
		return component.Output{Name: name, Type: v1alpha1.TypeInfo{Kind: "ConfigMap"}, Object: name, Expression: "self.data.value", Secret: secret}
	}
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Objects: component.ObjectOptions{Outputs: []component.Output{output("host", false), output("password", true)}},
	})
	b.create(widget.Spec{RequeueSpec: aDay, RequirementsSpec: requires(component.Requirement{
		APIVersion: "test.corbel.run/v1", Kind: "Widget", Name: "db", Inputs: map[string]string{"values.at": "host", "values.with": "password"},
	})})
	b.start(b.manager)
	db := &widget.Widget{ObjectMeta: b.object("db"), Spec: widget.Spec{RequeueSpec: aDay, Values: map[string]string{"host": "one", "password": "swordfish"}}}
	b.check(b.client.Create(t.Context(), db))
	b.comesToBeReady()
	b.comesToHold("at", "one")
	b.comesToHold("with", "swordfish")
	if notes := fmt.Sprintf("%+v", b.plan(component.PlanRequest[*widget.Widget]{Key: b.key("main")}).Notes); !strings.Contains(notes, "its outputs become the parameters values.at, values.with") ||
		strings.Contains(notes, "swordfish") {
		t.Errorf("the notes of the plan are %s", notes)
	}
	b.check(b.client.Patch(t.Context(), db, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"values":{"host":"two"}}}`))))
	b.comesToHold("at", "two")
	b.comesTo(func() (string, bool) { // the status of revision 1 is Ready until the next one is written
		status := b.get().Status
		return fmt.Sprintf("revision %d", status.Revision), status.Revision == 2 && status.IsReady()
	})
}

// databases are objects of another operator, with a status that a test writes. Each test has a group of its own.
type databases struct {
	*bed
	group string
}

// required returns a requirement of the database, with one input.
func (b databases) required(path, output string) component.RequirementsSpec {
	return requires(component.Requirement{APIVersion: b.group + "/v1", Kind: "Database", Name: "db", Inputs: map[string]string{path: output}})
}

func (b databases) database(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": b.group + "/v1", "kind": "Database", "metadata": map[string]any{"namespace": b.namespace, "name": "db"}, "status": status,
	}}
}

// define makes the API server serve the type.
func (b databases) define() {
	b.Helper()
	definition := read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: databases." + b.group + "}, spec: {group: " + b.group +
		", scope: Namespaced, names: {plural: databases, singular: database, kind: Database, listKind: DatabaseList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}")
	b.check(b.client.Create(b.Context(), definition))
	b.Cleanup(func() { _ = b.client.Delete(context.WithoutCancel(b.Context()), definition) })
}

// set creates the database with a status, or gives it another one.
func (b databases) set(status map[string]any) {
	b.Helper()
	b.eventually("the database", func() error {
		live := b.database(status)
		if err := b.client.Create(b.Context(), live); err == nil {
			return nil
		}
		patch := must(json.Marshal(map[string]any{"status": status}))(b)
		return b.client.Patch(b.Context(), b.database(nil), client.RawPatch("application/merge-patch+json", patch))
	})
}

func isReady(more map[string]any) map[string]any {
	more["conditions"] = []any{map[string]any{"type": "Ready", "status": "True", "reason": "Ready", "message": ""}}
	return more
}

func TestRequiredOutputsAreInputs(t *testing.T) {
	b := databases{newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}), "outputs.corbel.run"}
	b.create(widget.Spec{RequeueSpec: aDay, Values: map[string]string{"a": "1", "host": "unknown"}, RequirementsSpec: b.required("values.host", "host")})
	says := func(text string) {
		b.Helper()
		if _, _, message := b.expect(v1alpha1.StatePending, vocabulary.ReasonRetrying).Status.GetState(); !strings.Contains(message, text) {
			t.Errorf("the message is %q, want %q", message, text)
		}
	}
	says("requires Database " + b.namespace + "/db: the API server does not serve the type outputs.corbel.run/v1 Database")
	b.define()
	b.set(isReady(map[string]any{}))
	says("requires Database " + b.namespace + "/db: it has no output host yet")
	b.set(isReady(map[string]any{"outputs": map[string]any{"host": "db.one"}}))
	b.expectRequeue("an output that is there")
	b.untilRevision(1)
	b.comesToHold("host", "db.one")
	b.set(isReady(map[string]any{"outputs": map[string]any{"host": "db.two"}}))
	b.expectRequeue("an output that changes")
	if plan := b.plan(component.PlanRequest[*widget.Widget]{}); plan.Revision != 2 || len(plan.Changes) != 1 || plan.Changes[0].Key.Name != "host" {
		t.Errorf("the plan is of revision %d: %+v", plan.Revision, plan.Changes)
	}
	b.untilRevision(2)
	b.comesToHold("host", "db.two")

	// The output goes away, and then the object.
	for _, end := range []struct {
		do   func()
		says string
	}{
		{func() { b.set(map[string]any{"outputs": map[string]any{"host": nil}}) }, "it has no output host yet"},
		{func() { b.check(b.client.Delete(t.Context(), b.database(nil))) }, "it does not exist"},
	} {
		end.do()
		b.eventually("the message", func() error { // a watch requeues the component
			w, _, _ := b.reconcile()
			if _, _, message := w.Status.GetState(); !strings.Contains(message, end.says) {
				return errors.New(message)
			}
			return nil
		})
		b.check(b.client.Delete(t.Context(), must(b.read("host"))(t)))
		b.eventually("the repair", func() error {
			_, _, err := b.reconcile()
			if value, _ := b.configMap("host"); value != "db.two" {
				return fmt.Errorf("the value is %q; %w", value, err)
			}
			return nil
		})
		says(end.says)
		b.comesToHold("a", "1")
	}
	if revision := b.get().Status.Revision; revision != 2 {
		t.Errorf("revision %d", revision)
	}
	b.remove()
	b.wantNone("a", "host")
}

// typed is a generator of the spec that fails if the password is bad, and quotes it.
func typed(_ context.Context, _, _ string, spec *widget.Spec) ([]client.Object, error) {
	password := spec.Input("values.password")
	if strings.HasPrefix(password, "bad") {
		return nil, fmt.Errorf("the password %s is bad", password)
	}
	secret := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"name": "rendered"}, "stringData": map[string]any{"password": password},
	}}
	return []client.Object{secret}, nil
}

func TestRequiredSecretOutputIsNotQuoted(t *testing.T) {
	b := databases{newBed(t, manifests.For(typed), component.ReconcilerOptions{}), "secret-outputs.corbel.run"}
	b.define()
	b.set(isReady(map[string]any{"secretOutputs": []any{"password"}}))
	b.create(widget.Spec{RequeueSpec: aDay, RequirementsSpec: b.required("values.password", "password")})
	if _, _, message := b.expect(v1alpha1.StatePending, vocabulary.ReasonRetrying).Status.GetState(); !strings.Contains(message, "it has no output password yet") {
		t.Errorf("the message is %q", message)
	}
	db := b.database(nil)
	b.check(b.client.Get(t.Context(), b.key("db"), db))
	meta := b.object("db-outputs")
	meta.OwnerReferences = []metav1.OwnerReference{{APIVersion: db.GetAPIVersion(), Kind: db.GetKind(), Name: db.GetName(), UID: db.GetUID()}}
	b.check(b.client.Create(t.Context(), &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": canary}}))
	b.expectRequeue("a Secret that is there")
	b.untilRevision(1)
	rendered := &corev1.Secret{}
	b.check(b.client.Get(t.Context(), b.key("rendered"), rendered))
	if got := string(rendered.Data["password"]); got != canary {
		t.Errorf("the password is %q", got)
	}

	secret := &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"password": "bad-" + canary}}
	b.check(b.client.Update(t.Context(), secret))
	b.expectRequeue("a Secret that changes")
	w, _, err := b.reconcile()
	text := string(must(json.Marshal(w.Status))(t))
	if err == nil || strings.Contains(err.Error(), canary) || strings.Contains(text, canary) || w.Status.State != v1alpha1.StateError {
		t.Errorf("the error is %v, the status %s", err, text)
	}
}

// read returns a config map.
func (b *bed) read(name string) (client.Object, error) {
	object := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	return object, b.client.Get(b.Context(), b.key(name), object)
}

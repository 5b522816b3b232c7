// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/preview"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// plan returns a plan, and fails if anything was written for it.
func (b *bed) plan(request component.PlanRequest[*widget.Widget]) component.Plan {
	b.Helper()
	plan, err := b.tryPlan(request)
	b.check(err)
	return plan
}

func (b *bed) tryPlan(request component.PlanRequest[*widget.Widget]) (component.Plan, error) {
	b.Helper()
	if request.Key.Name == "" {
		request.Key = b.key("main")
	}
	from := len(b.events())
	plan, err := b.reconciler.Plan(b.Context(), request)
	for _, e := range b.events()[from:] {
		reads := e.Verb == "get" || e.Verb == "list" || e.Verb == "watch"
		late := e.Resource == "events" // it may be one of the reconcile before, because events are sent in the background
		if e.User == b.user && !reads && !late && !isDryRun(e) && !strings.Contains(string(e.Sent), "digest-key") {
			b.Errorf("the plan wrote: %s %s", e.Verb, e.URI)
		}
	}
	return plan, err
}

// changes returns the changes of a plan as "batch class kind name: paths".
func changes(plan component.Plan) []string {
	var lines []string
	for _, c := range plan.Changes {
		line := fmt.Sprintf("%d %s %s %s", c.Batch, c.Class, c.Key.Kind, c.Key.Name)
		for _, field := range c.Fields {
			line += fmt.Sprintf(" %s %s->%s", field.Path, field.Old, field.New)
		}
		lines = append(lines, line)
	}
	return lines
}

func TestAPlanSaysWhatAReconcileWouldDo(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	unsaved := &widget.Widget{ObjectMeta: b.object("main"), Spec: widget.Spec{Values: map[string]string{"a": "1"}}}
	if plan := b.plan(component.PlanRequest[*widget.Widget]{Edited: unsaved}); plan.Total("Create") != 1 {
		t.Errorf("a component that is not stored: %v", changes(plan))
	}
	if _, err := b.tryPlan(component.PlanRequest[*widget.Widget]{}); err == nil || !strings.Contains(err.Error(), "read Widget "+b.namespace+"/main") {
		t.Errorf("%v", err)
	}
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	plan := b.plan(component.PlanRequest[*widget.Widget]{})
	if diff := cmp.Diff([]string{"1 Create ConfigMap a", "1 Create ConfigMap b"}, changes(plan)); diff != "" || plan.Revision != 1 {
		t.Errorf("installation, revision %d (-want +got):\n%s", plan.Revision, diff)
	}
	b.until(v1alpha1.StateReady)

	edited := b.get()
	edited.Spec.Values = map[string]string{"a": "2", "c": "1"}
	plan = b.plan(component.PlanRequest[*widget.Widget]{Edited: edited})
	want := []string{"1 Create ConfigMap c", "1 Update ConfigMap a data.value 1->2", "2 Delete ConfigMap b"}
	got := changes(plan)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || plan.Revision != 2 || plan.Hash == "" {
		t.Errorf("an edit, revision %d, hash %q (-want +got):\n%s", plan.Revision, plan.Hash, diff)
	}
	if again := b.plan(component.PlanRequest[*widget.Widget]{Edited: edited}); again.Hash != plan.Hash {
		t.Error("the same edit has another hash")
	}
	if edited.Spec.Values["a"] = "3"; b.plan(component.PlanRequest[*widget.Widget]{Edited: edited}).Hash == plan.Hash {
		t.Error("another edit has the same hash")
	}
	if encoded, err := json.Marshal(plan); err != nil || !strings.Contains(string(encoded), `"version":"corbel.run/plan/v1"`) {
		t.Errorf("%v: %s", err, encoded)
	}

	next := manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
		if !manifests.FromContext(ctx).Preview {
			t.Error("the generator does not see that it is a preview")
		}
		objects, err := configMaps(ctx, namespace, name, parameters)
		return append(objects, configMap("new", nil)), err
	})
	plan = b.plan(component.PlanRequest[*widget.Widget]{Generator: next})
	if diff := cmp.Diff([]string{"1 Create ConfigMap new"}, changes(plan)); diff != "" {
		t.Errorf("another operator (-want +got):\n%s", diff)
	}
	planned := 0
	b.check(b.reconciler.PlanAll(t.Context(), next, 2, func(key client.ObjectKey, plan component.Plan, err error) {
		if key == b.key("main") {
			planned++
			b.check(err)
			if len(plan.Changes) != 1 {
				t.Errorf("in a plan of all: %v", changes(plan))
			}
		}
	}))
	if planned != 1 {
		t.Errorf("the component was planned %d times", planned)
	}
}

const previewOf = operatorName + "/preview"

// question returns a question about the component of the test.
func (b *bed) question() preview.Question {
	b.Helper()
	object := b.raw()
	b.check(unstructured.SetNestedField(object.Object, operatorName, "status", "reconciler"))
	return preview.Question{Component: object, FieldOwner: "asker"}
}

// edited returns a question about the component with a value.
func (b *bed) edited(name, value string) preview.Question {
	b.Helper()
	q := b.question()
	q.Edited = q.Component.DeepCopy()
	b.check(unstructured.SetNestedField(q.Edited.Object, value, "spec", "values", name))
	return q
}

// ask asks the operator, and returns the changes of the plan.
func (b *bed) ask(q preview.Question) (component.Plan, preview.Answer) {
	b.Helper()
	answer, err := preview.Ask(b.Context(), b.client, q)
	b.check(err)
	var plan component.Plan
	if answer.Plan != nil {
		b.check(json.Unmarshal(answer.Plan, &plan))
	}
	return plan, answer
}

// answers returns the names of the Secrets with answers, and whether the component has the annotation.
func (b *bed) answers() (names []string, annotated bool) {
	b.Helper()
	list := &corev1.SecretList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace), client.HasLabels{operatorName + "/preview-of"}))
	for _, secret := range list.Items {
		names = append(names, secret.Name)
	}
	_, annotated = b.get().Annotations[previewOf]
	return names, annotated
}

// elsewhere is configMaps, and one in the namespace default.
func elsewhere(name string) manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, component string, parameters types.Unstructurable) ([]client.Object, error) {
		objects, err := configMaps(ctx, namespace, component, parameters)
		values, _ := parameters.ToUnstructured()["values"].(map[string]any)
		other := configMap(name, nil)
		other.Namespace, other.Data = "default", map[string]string{"value": fmt.Sprint(values["a"])}
		return append(objects, other), err
	})
}

func TestTheRunningOperatorAnswersWhatItWouldDo(t *testing.T) {
	b := newReady(t, elsewhere("preview-elsewhere"), widget.Spec{Values: map[string]string{"a": "1", "b": "1"}}, component.ReconcilerOptions{})
	b.start(b.manager)
	b.comesToState(v1alpha1.StateReady)
	before := b.get()
	b.resetRequests()

	if plan, _ := b.ask(b.question()); len(plan.Changes) > 0 || plan.Revision != 1 {
		t.Errorf("at rest: revision %d, %v", plan.Revision, changes(plan))
	}
	plan, answer := b.ask(b.edited("a", "2"))
	want := []string{"1 Update ConfigMap a data.value 1->2", "1 Update ConfigMap preview-elsewhere data.value ***->***"}
	got := changes(plan)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" || answer.Hidden != 1 || plan.Revision != 2 || plan.Hash == "" {
		t.Errorf("an edit: revision %d, %d objects hidden (-want +got):\n%s", plan.Revision, answer.Hidden, diff)
	}
	q := b.question()
	q.Delete = true
	if plan, _ := b.ask(q); plan.Total(report.ChangeDelete) != 3 {
		t.Errorf("deletion: %v", changes(plan))
	}

	q = b.question()
	q.Manifests = true
	_, answer = b.ask(q)
	var whole, hidden []string
	for _, manifest := range answer.Manifests.Objects {
		object := unstructured.Unstructured{Object: manifest.Object}
		value, _, _ := unstructured.NestedString(object.Object, "data", "value")
		_, known := object.Object["data"].(map[string]any)["value"]
		if manifest.Hidden {
			hidden = append(hidden, fmt.Sprintf("%s %s/%s %q %t", object.GetKind(), object.GetNamespace(), object.GetName(), value, known))
		} else {
			whole = append(whole, fmt.Sprintf("%s %s %q", object.GetKind(), object.GetName(), value))
		}
	}
	slices.Sort(whole) // the generator of the test goes through a map
	if diff := cmp.Diff([][]string{{`ConfigMap a "1"`, `ConfigMap b "1"`}, {`ConfigMap default/preview-elsewhere "" true`}}, [][]string{whole, hidden}); diff != "" ||
		answer.Manifests.Namespace != b.namespace || answer.Manifests.Name != "main" || answer.Plan == nil {
		t.Errorf("manifests: %+v (-want +got):\n%s", answer.Manifests, diff)
	}

	// Two users do not get each other's answers.
	var users sync.WaitGroup
	for _, value := range []string{"3", "4", "5"} {
		q := b.edited("a", value)
		users.Go(func() {
			answer, err := preview.Ask(t.Context(), b.client, q)
			if err != nil || !strings.Contains(string(answer.Plan), `"new":"`+value+`"`) {
				t.Errorf("asked about %s: %s, error %v", value, answer.Plan, err)
			}
		})
	}
	users.Wait()

	wrong := b.edited("a", "2")
	b.check(unstructured.SetNestedField(wrong.Edited.Object, "Not_Legal", "spec", "namespace"))
	if _, err := preview.Ask(t.Context(), b.client, wrong); err == nil || !strings.Contains(err.Error(), `"Not_Legal"`) {
		t.Errorf("a mistake: %v", err)
	}
	q = b.question()
	q.From, q.To = 1, 7
	if _, err := preview.Ask(t.Context(), b.client, q); err == nil || !strings.Contains(err.Error(), "revision 7 is not in its history") {
		t.Errorf("a revision that does not exist: %v", err)
	}

	// A Secret of another client is left as it is, and nothing is answered.
	request := preview.NewRequest(preview.ActionEdited, time.Now())
	foreign := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: request.SecretName()}, Data: map[string][]byte{"edited": []byte("{}")}}
	b.check(b.client.Create(t.Context(), foreign))
	b.annotate(map[string]string{previewOf: request.String()})
	b.ask(b.question()) // the one before is done by then
	stored := &corev1.Secret{}
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(foreign), stored))
	if stored.ResourceVersion != foreign.ResourceVersion {
		t.Error("a Secret of another client was changed")
	}

	after := b.get()
	if diff := cmp.Diff(before.Status, after.Status); diff != "" || before.Generation != after.Generation {
		t.Errorf("the status has changed (-before +after):\n%s", diff)
	}
	for _, write := range b.writes() {
		if !strings.Contains(write, " secrets corbel-preview-") {
			t.Errorf("the operator wrote: %s", write)
		}
	}

	// The preview answers for a suspended component, for a component with a wrong spec, and for a component in deletion.
	b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
	b.comesToState(v1alpha1.StateSuspended)
	if plan, _ := b.ask(b.edited("c", "1")); plan.Total(report.ChangeCreate) != 1 {
		t.Errorf("suspended: %v", changes(plan))
	}
	b.update(func(w *widget.Widget) { w.Spec.Suspend, w.Spec.Namespace = false, "Not_Legal" })
	b.comesToState(v1alpha1.StateError)
	repaired := b.edited("c", "1")
	unstructured.RemoveNestedField(repaired.Edited.Object, "spec", "namespace")
	if plan, _ := b.ask(repaired); plan.Total(report.ChangeCreate) != 1 {
		t.Errorf("stalled: %v", changes(plan))
	}
	b.update(func(w *widget.Widget) {
		w.Spec.Namespace = ""
		w.Finalizers = append(w.Finalizers, "example.com/foreign")
	})
	b.check(b.client.Delete(t.Context(), b.get()))
	b.comesToState(v1alpha1.StateDeleting)
	if plan, _ := b.ask(b.question()); plan.Total(report.ChangeBlocked) == 0 {
		t.Errorf("being deleted: %v", changes(plan))
	}
	b.update(func(w *widget.Widget) {
		w.Finalizers = slices.DeleteFunc(w.Finalizers, func(f string) bool { return f != operatorName })
	})
	b.comesTo(func() (string, bool) {
		err := b.client.Get(t.Context(), b.key("main"), &widget.Widget{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func TestAPreviewCostsFourRequestsAndIsRemoved(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	component.SetPreviewLife(b.reconciler, 2*time.Second)
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	b.setValues(map[string]string{"a": "2"})
	// A process before this one has left an answer, and a request from long ago.
	old := preview.Request{Nonce: "1000000000-aaaaaaaaaaaaaaaa", Action: preview.ActionPlan}
	owner := preview.Owner{Reconciler: operatorName, APIVersion: widget.GroupVersion.String(), Kind: "Widget", Namespace: b.namespace, Name: "main", UID: b.get().UID}
	b.check(b.client.Create(t.Context(), owner.Secret(old)))
	b.annotate(map[string]string{previewOf: old.String()})
	b.start(b.manager)
	gone := func() (string, bool) {
		names, annotated := b.answers()
		return fmt.Sprintf("%v, annotated: %t", names, annotated), len(names) == 0 && !annotated
	}
	b.comesTo(gone)
	b.comesToState(v1alpha1.StateReady)

	count := func(do func()) (requests []string) {
		from := len(b.events())
		do()
		for _, e := range b.events()[from:] {
			if e.User == b.user && e.Verb != "watch" && e.Resource != "leases" && e.Resource != "events" {
				requests = append(requests, e.Verb+" "+e.URI)
			}
		}
		return requests
	}
	manifest := b.edited("a", "3").Edited
	b.plan(component.PlanRequest[*widget.Widget]{Manifest: manifest}) // later plans know the types
	planned := count(func() { b.plan(component.PlanRequest[*widget.Widget]{Manifest: manifest}) })
	previewed := count(func() {
		b.ask(b.edited("a", "3"))
		b.comesTo(gone)
	})
	if len(previewed) > len(planned)+4 {
		t.Errorf("a plan took %q, a preview %q", planned, previewed)
	}

	q := b.question()
	q.From, q.To = 1, 2
	_, answer := b.ask(q)
	var differences []report.PlannedChange
	b.check(json.Unmarshal(answer.Changes, &differences))
	if len(differences) != 1 || len(differences[0].Fields) != 1 || differences[0].Fields[0].New != "2" {
		t.Errorf("the revisions differ in %+v", differences)
	}
	b.comesTo(gone)
}

// TestARequestForAPreviewIsAnsweredAfterACrash kills the operator at every request of an answer. Another operator then answers: once, and
// with the same plan.
func TestARequestForAPreviewIsAnsweredAfterACrash(t *testing.T) {
	for name, edited := range map[string]bool{"as it is stored": false, "edited": true} {
		t.Run(name, func(t *testing.T) {
			var want []string
			crashAtEachRequest(t, func(t *testing.T, at int, after bool) (requests int, crashed bool) {
				gate := &wire.Gate{}
				b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, via(gate.Wrap))
				gate.Counts = func(r *http.Request) bool {
					return isNoEvent(r) && !r.URL.Query().Has("watch") && strings.Contains(r.URL.Path, "/"+b.namespace+"/") // not of another bed
				}
				b.create(widget.Spec{Values: map[string]string{"a": "1"}})
				stop := b.start(b.manager)
				b.comesToBeReady()
				revision, question := b.get().Status.Revision, b.question()
				if edited {
					question = b.edited("a", "2")
				}
				gate.Aim(at, after, nil)
				type result struct {
					answer   preview.Answer
					err      error
					requests []string
				}
				answered := make(chan result, 1)
				go func() {
					answer, err := preview.Ask(t.Context(), b.client, question)
					answered <- result{answer, err, gate.Requests()}
				}()
				b.eventually("an answer or a crash", func() error {
					if len(answered) == 0 && !gate.HasCrashed() {
						return errors.New("there is none")
					}
					return nil
				})
				if gate.HasCrashed() {
					stop()
					b.restart(manifests.GeneratorFunc(configMaps))
					b.start(b.manager)
				}
				got := <-answered // Ask ends by itself
				b.check(got.err)
				var plan component.Plan
				b.check(json.Unmarshal(got.answer.Plan, &plan))
				if at == 0 {
					want = changes(plan)
				}
				if diff := cmp.Diff(want, changes(plan)); diff != "" || len(want) > 0 != edited {
					t.Errorf("the plan (-want +got):\n%s", diff)
				}
				if secrets, _ := b.answers(); len(secrets) != 1 {
					t.Errorf("the Secrets of previews are %v, want one", secrets)
				}
				if b.comesToBeReady(); b.get().Status.Revision != revision {
					t.Errorf("the revision is %d, want %d", b.get().Status.Revision, revision)
				}
				return len(got.requests), gate.HasCrashed()
			})
		})
	}
}

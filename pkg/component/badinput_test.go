// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// rendering is a generator that always returns the same.
func rendering(objects ...client.Object) manifests.Generator {
	return manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return objects, nil
	})
}

func configMap(name string, change func(*corev1.ConfigMap)) *corev1.ConfigMap {
	object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Name: name}}
	if change != nil {
		change(object)
	}
	return object
}

func annotated(name, annotation, value string) *corev1.ConfigMap {
	return configMap(name, func(c *corev1.ConfigMap) { c.Annotations = map[string]string{operatorName + "/" + annotation: value} })
}

// manifest is a row about an object that is no legal dependent; beside it there is a good one.
func manifest(name string, object client.Object, says ...string) badInput {
	return badInput{name: name, generator: rendering(configMap("good", nil), object), state: v1alpha1.StateError, reason: vocabulary.ReasonInvalid, says: says}
}

// broken is a row about a generator that does not do what it should.
func broken(name string, says string, generate manifests.GeneratorFunc) badInput {
	return badInput{name: name, generator: generate, state: v1alpha1.StateError, reason: vocabulary.ReasonError, says: []string{says}}
}

// read makes an object of text, as generators do that read files.
func read(text string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), object); err != nil {
		panic(err)
	}
	return object
}

func TestBadInputIsOneClearErrorAndNothingIsWritten(t *testing.T) {
	tests := []badInput{
		manifest("a policy that does not exist", annotated("a", "update-policy", "sometimes"), "/a: ", "sometimes"),
		manifest("a type that is not served", read("{apiVersion: nowhere.example.com/v1, kind: Thing, metadata: {name: a}}"),
			"Thing a: type nowhere.example.com/v1 Thing is not served"),
		manifest("the definition of the component itself", read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: widgets.test.corbel.run}, "+
			"spec: {group: test.corbel.run, scope: Namespaced, names: {kind: Widget, plural: widgets}, versions: [{name: v1, served: true}]}}"),
			"CustomResourceDefinition widgets.test.corbel.run: ", "cannot manage it itself"),
		broken("a generator that panics", "generator: panicked: oh", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) { panic("oh") }),
		broken("a generator with an error of many lines", "generator: line 1", func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return nil, errors.New("line 1\n\tline 2\n" + strings.Repeat("x\n", 5000))
		}),
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

// A value that cannot be decoded would stop the watch of all components.
func TestTheSchemaRefusesBadSpecs(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	long := strings.Repeat("x", 300)
	every := func(interval string) object { return object{"requeueInterval": interval} }
	for _, test := range []struct {
		spec object
		says string // empty: it is stored, and can be read
	}{
		{every("10m"), ""}, {every("1h30m"), ""}, {every("1.5s"), ""}, {every("99999h99999h99999h99999h99999h"), ""},
		{every("99999h99999h99999h99999h99999h99999h"), "spec.requeueInterval"}, {every("9999999999999h"), "spec.requeueInterval"}, {every("-1m"), "spec.requeueInterval"},
		{every(""), "spec.requeueInterval"}, {every("10"), "spec.requeueInterval"}, {every("1d"), "spec.requeueInterval"}, {every("abc"), "spec.requeueInterval"},
		{object{"timeout": strings.Repeat("9", 10_000_000)}, "limit is"},
		{object{"serviceAccountName": long}, "spec.serviceAccountName"}, {object{"namespace": long[:64]}, "spec.namespace"}, {object{"name": long}, "spec.name"},
		{object{"password": object{"key": "k"}}, "spec.password.name"}, {object{"updatePolicy": "Sometimes"}, "spec.updatePolicy"},
	} {
		w := b.widgetOf("main", test.spec)
		if err := b.client.Create(t.Context(), w); test.says != "" {
			if rejected := apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsRequestEntityTooLargeError(err); !rejected || !strings.Contains(err.Error(), test.says) {
				t.Errorf("%.100v: the API server says %v", test.spec, err)
			}
			continue
		} else if err != nil {
			t.Fatal(err)
		}
		b.get()
		b.check(b.client.Delete(t.Context(), w))
	}
}

// badInput is one way to give an operator something wrong, and what becomes of it.
type badInput struct {
	name string

	// The component, as a user writes it.
	called      string // main by default
	spec        map[string]any
	annotations map[string]string
	status      func(*widget.Status) // written by another client before the first reconcile
	// What the operator does, and what is there before: config maps of the spec's
	// values by default, and nothing.
	generator manifests.Generator
	given     func(*bed)

	// The verdict of the reconcile; nothing said means that all is well.
	state  v1alpha1.State
	reason string
	says   []string
}

// run runs a reconcile over the bad component and, beside it, over one that is sound. Whatever is wrong, the
// message is one short sentence without a secret, nothing but the status is written, at rest
// nothing at all, the other component gets ready, and both can be deleted.
func (test badInput) run(t *testing.T) {
	b := newBed(t, test.generate(), component.ReconcilerOptions{}, func(b *bed) {
		if test.given != nil {
			test.given(b)
		}
	})
	bad, sound := b.widgetOf(test.called, test.spec), b.widgetOf("sound", map[string]any{"values": map[string]any{"sound": "1"}})
	bad.SetAnnotations(test.annotations)
	b.check(b.client.Create(t.Context(), bad))
	b.check(b.client.Create(t.Context(), sound))
	if test.status != nil {
		w := &widget.Widget{}
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(bad), w))
		test.status(&w.Status)
		b.check(b.client.Status().Update(t.Context(), w))
	}
	b.resetRequests()
	w, err := b.passOf(bad.GetName())
	test.check(t, w, err)
	if test.state != "" {
		b.onlyStatus()
		b.resetRequests()
		b.passOf(bad.GetName())
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("writes at rest: %v", writes)
		}
	}
	if w, err := b.passOf("sound"); !w.Status.IsReady() {
		t.Errorf("another component is not ready: %v", err)
	}
	for _, object := range []*unstructured.Unstructured{bad, sound} {
		b.check(b.client.Delete(t.Context(), object))
		b.untilGoneOf(object.GetName())
	}
	for _, name := range []string{"good", "sound"} {
		if _, exists := b.configMap(name); exists {
			t.Errorf("config map %s is still there", name)
		}
	}
}

// generate keeps what is wrong away from the component that is sound.
func (test badInput) generate() manifests.Generator {
	return manifests.GeneratorFunc(func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		if _, sound := p.(*widget.Spec).Values["sound"]; sound || test.generator == nil {
			return configMaps(ctx, namespace, name, p)
		}
		return test.generator.Generate(ctx, namespace, name, p)
	})
}

func (test badInput) check(t *testing.T, w *widget.Widget, err error) {
	t.Helper()
	state, reason, message := w.Status.GetState()
	if test.state == "" {
		test.state, test.reason = v1alpha1.StateReady, vocabulary.ReasonReady
	}
	if state != test.state || reason != test.reason {
		t.Errorf("%s, %s: %s (%v)", state, reason, message, err)
	}
	for _, text := range test.says {
		if !strings.Contains(message, text) {
			t.Errorf("the message does not say %q: %s", text, message)
		}
	}
	if strings.ContainsAny(message, "\n\t") || strings.Contains(message, "goroutine") || strings.Contains(message, canary) || len(message) > 1024 {
		t.Errorf("the message is no short sentence: %s", message)
	}
	// What only a person can mend is not tried again and again.
	hopeless := reason == vocabulary.ReasonInvalid || reason == vocabulary.ReasonSpecInvalid
	if stalled := apimeta.IsStatusConditionTrue(w.Status.Conditions, v1alpha1.ConditionStalled); stalled != hopeless {
		t.Errorf("stalled is %t", stalled)
	}
	if retried := reason == vocabulary.ReasonError; retried != (err != nil) {
		t.Errorf("the reconcile returned %v", err)
	}
}

// onlyStatus checks that since the last resetRequests nothing was written but the component itself.
func (b *bed) onlyStatus() {
	b.Helper()
	for _, write := range b.writes() {
		if !strings.HasPrefix(write, "patch widgets") && !strings.Contains(write, "digest-key") {
			b.Errorf("something was written: %s", write)
		}
	}
}

func (b *bed) widgetOf(name string, spec map[string]any) *unstructured.Unstructured {
	if name == "" {
		name = "main"
	}
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	object.SetNamespace(b.namespace)
	object.SetName(name)
	return object
}

// passOf runs a reconcile over a component of any name.
func (b *bed) passOf(name string) (*widget.Widget, error) {
	b.Helper()
	_, err := b.reconciler.Reconcile(b.Context(), ctrl.Request{NamespacedName: b.key(name)})
	w := &widget.Widget{}
	b.check(b.client.Get(b.Context(), b.key(name), w))
	conditionstest.Check(b, conditions.For(w, &w.Status.Conditions))
	return w, err
}

type object = map[string]any

// invalid is a row about a spec, or an annotation, that only a person can mend.
func invalid(name string, spec object, says ...string) badInput {
	return badInput{name: name, spec: spec, state: v1alpha1.StateError, reason: vocabulary.ReasonSpecInvalid, says: says}
}

// flagged is a row about an annotation of the component.
func flagged(annotation, value string, says ...string) badInput {
	row := invalid("annotation "+annotation, good, append(says, operatorName+"/"+annotation)...)
	row.annotations = map[string]string{operatorName + "/" + annotation: value}
	return row
}

// harmless is a row about something odd that does not matter.
func harmless(name string, status func(*widget.Status)) badInput {
	return badInput{name: name, spec: good, status: status}
}

var good = object{"values": object{"good": "1"}}

// What is wrong with a component itself. Each mistake has a test without a server: TestDirectives, TestAccess, TestAbsentReferences and
// TestMistakesInReferences. Tests of their own hold what takes more than
// one reconcile: durations that were stored before the schema forbade them
// (TestAStoredObjectThatCannotBeDecodedStopsNoOtherAndSaysWhatIsWrong), records that were
// forged (TestAForgedInventoryHealsAndTouchesNothingOfOthers),
// and hooks in all positions (TestAHookThatMisbehavesIsNamedInEveryPosition).
func TestABadComponentSaysWhatIsWrongWithItAndHarmsNothing(t *testing.T) {
	tests := []badInput{
		invalid("an illegal namespace and an illegal name", object{"namespace": "..", "name": "é"}, `deployment namespace ".."`, `deployment name "é"`),
		invalid("a service account of another namespace", object{"serviceAccountName": "kube-system:admin"}, `service account "kube-system:admin"`),
		{name: "a key that is not there", given: func(b *bed) { b.createSecret("creds", map[string]string{"user": canary}) },
			spec: object{"password": object{"name": "creds", "key": "pin"}}, state: v1alpha1.StatePending, reason: vocabulary.ReasonRetrying, says: []string{"/creds has no key pin"}},
		flagged("management-policy", "detach-on-delte", `"detach-on-delte" must be one of`),
		flagged("allow-empty", "yes", `"yes"`),
		flagged("rollout", "never", `"never" must be "pin", "promote" or "ignore"`),
		flagged("drift-policy", "warn", `"warn"`),

		harmless("a state of a deletion without a deletion", func(s *widget.Status) { s.State = v1alpha1.StateDeleting }),
		harmless("counters and times that cannot be", func(s *widget.Status) {
			s.Revision, s.ObservedGeneration, s.AppliedGeneration, s.Progress = -7, 1<<60, -3, "many/few"
			s.ProcessingSince, s.LastAppliedAt = &metav1.Time{Time: time.Unix(1<<34, 0)}, &metav1.Time{Time: time.Unix(0, 0)}
			s.ProcessingDigest = strings.Repeat("d", 1000)
		}),
		harmless("conditions of others that lie", func(s *widget.Status) {
			for _, kind := range []string{"Ready", "Stalled", "Reconciling"} {
				s.Conditions = append(s.Conditions, metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: "Lie", Message: "all is well",
					ObservedGeneration: 1 << 60, LastTransitionTime: metav1.Now()})
			}
		}),
		{name: "a name of 253 characters", called: strings.Repeat(strings.Repeat("n", 62)+".", 4) + "n", spec: good, given: smallStatus},
	}
	for _, test := range tests {
		t.Run(test.name, test.run)
	}
}

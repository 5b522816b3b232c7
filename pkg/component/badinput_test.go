// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
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
		{name: "a policy that does not exist", state: v1alpha1.StateError, reason: vocabulary.ReasonInvalid, says: []string{"/a: ", "sometimes"},
			generator: rendering(configMap("good", nil), annotated("a", "update-policy", "sometimes"))},
		{name: "a generator with an error of many lines", state: v1alpha1.StateError, reason: vocabulary.ReasonError, says: []string{"generator: line 1"},
			generator: manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				return nil, errors.New("line 1\n\tline 2\n" + strings.Repeat("x\n", 5000))
			})},
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
		b.wantNoWrites("writes at rest")
	}
	if w, err := b.passOf("sound"); !w.Status.IsReady() {
		t.Errorf("another component is not ready: %v", err)
	}
	for _, object := range []*unstructured.Unstructured{bad, sound} {
		b.check(b.client.Delete(t.Context(), object))
		b.untilGoneOf(object.GetName())
	}
	b.wantNone("good", "sound")
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

// loose is a version of widgets with a schema that demands nothing of the spec.
var loose = schema.GroupVersion{Group: "loose.corbel.run", Version: "v1"}

// startLoose installs the version and starts an operator for it in the namespace of the test.
func (b *bed) startLoose() {
	b.Helper()
	scheme := installVariant(b, loose.Group, func(crd *apiextensionsv1.CustomResourceDefinition) {
		crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}
	})
	b.auditOptions.Component.Group = loose.Group
	manager := b.confined(must(b.env.ConfigFor(b.user, "system:masters"))(b), scheme)
	b.check(component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}).SetupWithManager(manager))
	b.start(manager)
}

func (b *bed) looseWidget(name string, spec map[string]any) *unstructured.Unstructured {
	object := b.widgetOf(name, spec)
	object.SetGroupVersionKind(loose.WithKind("Widget"))
	return object
}

func TestAStoredObjectThatCannotBeDecodedStopsNoOtherAndSaysWhatIsWrong(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	b.startLoose()
	values := func(name string) map[string]any { return map[string]any{name: "1"} }
	tests := []struct {
		name   string
		spec   map[string]any
		reason string
		says   string
	}{
		{"good", map[string]any{"values": values("good"), "requeueInterval": "5m"}, "Ready", ""},
		{"text", map[string]any{"values": values("text"), "requeueInterval": "abc"}, "SpecInvalid", `spec.requeueInterval: "abc" is no duration`},
		{"number", map[string]any{"values": values("number"), "timeout": int64(5), "retryInterval": "∞"}, "SpecInvalid", "spec.timeout: 5 is no duration"},
		{"huge", map[string]any{"values": values("huge"), "timeout": strings.Repeat("9", 100_000) + "h"}, "SpecInvalid", "spec.timeout: \"999"},
		{"negative", map[string]any{"values": values("negative"), "timeout": "-5m", "requeueInterval": "0s", "retryInterval": "1ns"}, "Ready", ""},
		{"undecodable", map[string]any{"values": "no map"}, "SpecInvalid", "Widget " + b.namespace + "/undecodable: what is stored does not fit the type of the operator"},
	}
	for _, test := range tests {
		b.check(b.client.Create(t.Context(), b.looseWidget(test.name, test.spec)))
	}
	for _, test := range tests {
		b.comesTo(func() (string, bool) {
			object := b.looseWidget(test.name, nil)
			b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
			status := struct {
				Status widget.Status `json:"status"`
			}{}
			b.check(runtime.DefaultUnstructuredConverter.FromUnstructured(map[string]any{"status": object.Object["status"]}, &status))
			_, reason, message := status.Status.GetState()
			return test.name + ": " + reason + ": " + message, reason == test.reason && strings.Contains(message, test.says)
		})
	}
	// Once it fits, it works; and at rest nothing is written.
	object := b.looseWidget("undecodable", nil)
	b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
	object.Object["spec"] = map[string]any{"values": values("mended")}
	b.check(b.client.Update(t.Context(), object))
	b.comesTo(func() (string, bool) {
		b.check(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object))
		state, _, _ := unstructured.NestedString(object.Object, "status", "state")
		return state, state == "Ready"
	})
}

// setStored replaces the status in etcd, past all checks of the server.
func (b *bed) setStored(change func(status map[string]any)) *unstructured.Unstructured {
	b.Helper()
	stored := b.raw()
	status, _, _ := unstructured.NestedMap(stored.Object, "status")
	change(status)
	stored.Object["status"] = status
	stored.SetResourceVersion("")
	b.check(b.env.Store(b.Context(), "test.corbel.run/widgets/"+b.namespace+"/main", stored.Object))
	return stored
}

func TestAStatusThatAnotherWriterStoredStopsNoComponent(t *testing.T) {
	condition := func(members map[string]any) map[string]any {
		all := map[string]any{"type": "Initialized", "status": "True", "reason": "Done", "message": "ok", "lastTransitionTime": "2020-01-01T00:00:00Z"}
		for member, value := range members {
			if all[member] = value; value == nil {
				delete(all, member)
			}
		}
		return all
	}
	for _, test := range []struct {
		name   string
		fields map[string]any
		// want are type, status and reason of the condition of the other writer.
		want [3]string
	}{
		{"a reason is missing", condition(map[string]any{"reason": nil, "message": nil}), [3]string{"Initialized", "True", "Unknown"}},
		{"a status is no text", condition(map[string]any{"status": true}), [3]string{"Initialized", "Unknown", "Done"}},
		{"the state is a number", map[string]any{"state": int64(3)}, [3]string{}},
		{"the history is that of another type", map[string]any{"history": []any{map[string]any{"version": int64(1), "status": "deployed"}}}, [3]string{}},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			breaks := func(status map[string]any) {
				if test.want == [3]string{} {
					maps.Copy(status, test.fields)
					return
				}
				list, _ := status["conditions"].([]any)
				list = slices.DeleteFunc(list, func(c any) bool { return c.(map[string]any)["type"] == test.want[0] })
				status["conditions"] = append(list, test.fields)
			}
			b.setStored(breaks)
			w := b.until(v1alpha1.StateReady)
			i := slices.IndexFunc(w.Status.Conditions, func(c metav1.Condition) bool { return c.Type == test.want[0] })
			if test.want[0] != "" && (i < 0 || [3]string{test.want[0], string(w.Status.Conditions[i].Status), w.Status.Conditions[i].Reason} != test.want) {
				t.Errorf("the conditions are %+v, want %v", w.Status.Conditions, test.want)
			}
			b.check(b.client.Delete(t.Context(), b.setStored(breaks)))
			b.untilGone()
			b.wantNone("a")
		})
	}
}

// start runs the manager until the end of the test, or until the function is called.
func (b *bed) start(manager ctrl.Manager) (stop func()) {
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			b.Errorf("the manager ended: %v", err)
		}
	})
	b.Cleanup(stop)
	return stop
}

// comesTo looks until the condition holds.
func (b *bed) comesTo(look func() (seen string, ok bool)) {
	b.Helper()
	b.eventually("the condition", func() error {
		if seen, ok := look(); !ok {
			return errors.New(seen)
		}
		return nil
	})
}

// comesToState waits until the component has the state.
func (b *bed) comesToState(state v1alpha1.State) {
	b.Helper()
	b.comesTo(func() (string, bool) {
		got, reason, message := b.get().Status.GetState()
		return fmt.Sprintf("%s, %s: %s", got, reason, message), got == state
	})
}

// installVariant installs the type in another group, with a definition that was
// changed, and returns a scheme in which Widget belongs to that group.
func installVariant(b *bed, group string, change func(*apiextensionsv1.CustomResourceDefinition)) *runtime.Scheme {
	b.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{}
	b.check(yaml.Unmarshal(must(os.ReadFile("testdata/crds/test.corbel.run_widgets.yaml"))(b), crd))
	crd.Name, crd.Spec.Group = "widgets."+group, group
	change(crd)
	_, err := envtest.InstallCRDs(b.env.Config(), envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}})
	b.check(err)

	scheme := runtime.NewScheme()
	b.check(clientgoscheme.AddToScheme(scheme))
	version := schema.GroupVersion{Group: group, Version: "v1"}
	scheme.AddKnownTypes(version, &widget.Widget{}, &widget.WidgetList{})
	metav1.AddToGroupVersion(scheme, version)
	return scheme
}

func TestOutdatedDefinitions(t *testing.T) {
	without := func(fields ...string) func(*apiextensionsv1.CustomResourceDefinition) {
		return func(crd *apiextensionsv1.CustomResourceDefinition) {
			properties := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"].Properties
			for _, field := range fields {
				delete(properties, field)
			}
		}
	}
	tests := []struct {
		name   string
		group  string
		change func(*apiextensionsv1.CustomResourceDefinition)
		says   string
	}{
		{"no status subresource", "nosub.corbel.run", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil }, "status subresource"},
		{"no field for the inventory", "noinventory.corbel.run", without("inventory"), "status.inventory"},
		{"no field for the installed revision", "noinstalled.corbel.run", without("installedRevision"), "status.installedRevision"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			b := newBed(t, rendering(configMap("a", nil)), component.ReconcilerOptions{})
			scheme := installVariant(b, test.group, test.change)
			r := component.NewReconciler[*widget.Widget](operatorName, rendering(configMap("a", nil)), component.ReconcilerOptions{})
			b.check(r.SetupWithManager(b.confined(must(b.env.ConfigFor(b.user, "system:masters"))(t), scheme)))
			user := must(client.New(b.env.Config(), client.Options{Scheme: scheme}))(t)
			w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "main"}}
			b.check(user.Create(t.Context(), w))

			for range 3 { // trying again does not help
				result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")})
				if err != nil || result.RequeueAfter <= 0 || result.RequeueAfter > 15*time.Second {
					t.Errorf("the reconcile returned %+v, %v", result, err)
				}
			}
			b.check(user.Get(t.Context(), b.key("main"), w))
			conditionstest.Check(t, conditions.For(w, &w.Status.Conditions))
			index := slices.IndexFunc(w.Status.Conditions, func(c metav1.Condition) bool { return c.Type == v1alpha1.ConditionStalled })
			if index < 0 || w.Status.Conditions[index].Reason != vocabulary.ReasonCRDOutdated || !strings.Contains(w.Status.Conditions[index].Message, test.says) {
				t.Errorf("conditions %+v do not say %q", w.Status.Conditions, test.says)
			}
			b.wantNone("a")

			// A corrected definition is all that it takes.
			installVariant(b, test.group, func(*apiextensionsv1.CustomResourceDefinition) {})
			b.eventually("the component to be ready", func() error {
				if result, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil || result.RequeueAfter > 10*time.Minute {
					return fmt.Errorf("the reconcile returned %+v, %v", result, err)
				}
				if b.check(user.Get(t.Context(), b.key("main"), w)); !w.Status.IsReady() {
					return fmt.Errorf("conditions %+v", w.Status.Conditions)
				}
				return nil
			})
			if w.Status.Revision != 1 || w.Status.InstalledRevision != 1 {
				t.Errorf("revision %d, and %d installed, want 1 and 1", w.Status.Revision, w.Status.InstalledRevision)
			}
		})
	}
}

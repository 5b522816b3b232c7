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
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/manifests"
)

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

func looseWidget(namespace, name string, spec map[string]any) *unstructured.Unstructured {
	object := &unstructured.Unstructured{Object: map[string]any{"spec": spec}}
	object.SetGroupVersionKind(loose.WithKind("Widget"))
	object.SetNamespace(namespace)
	object.SetName(name)
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
		b.check(b.client.Create(t.Context(), looseWidget(b.namespace, test.name, test.spec)))
	}
	for _, test := range tests {
		b.comesTo(func() (string, bool) {
			object := looseWidget(b.namespace, test.name, nil)
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
	object := looseWidget(b.namespace, "undecodable", nil)
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
	stored := &unstructured.Unstructured{}
	stored.SetGroupVersionKind(widget.GroupVersion.WithKind("Widget"))
	b.check(b.client.Get(b.Context(), b.key("main"), stored))
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
			if _, exists := b.configMap("a"); exists {
				t.Error("the dependent is left")
			}
		})
	}
}

// start runs the manager until the end of the test.
func (b *bed) start(manager ctrl.Manager) {
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Start(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Errorf("the manager ended: %v", err)
		}
	})
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

func TestAServerThatRefusesToStoreTheStatusIsReportedByAnEvent(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	b.startLoose()
	object := looseWidget(b.namespace, "refused", map[string]any{"values": map[string]any{"a": "1"}})
	b.check(b.client.Create(t.Context(), object))
	state := func() (string, bool) {
		b.check(client.IgnoreNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)))
		state, _, _ := unstructured.NestedString(object.Object, "status", "state")
		return state, state == "Ready"
	}
	b.comesTo(state)

	crd := &unstructured.Unstructured{}
	crd.SetAPIVersion("apiextensions.k8s.io/v1")
	crd.SetKind("CustomResourceDefinition")
	crd.SetName("widgets." + loose.Group)
	setRule := func(rules string) {
		t.Helper()
		patch := `[{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/x-kubernetes-validations", "value": ` + rules + `}]`
		b.check(b.client.Patch(t.Context(), crd, client.RawPatch("application/json-patch+json", []byte(patch))))
	}
	setRule(`[{"rule": "self.metadata.name != 'refused'", "message": "that name is not allowed"}]`)
	b.comesTo(func() (string, bool) { // until the server knows the rule
		err := b.client.Create(t.Context(), looseWidget(b.namespace, "refused", nil), client.DryRunAll)
		return fmt.Sprint(err), err != nil && strings.Contains(err.Error(), "not allowed")
	})
	b.check(b.client.Delete(t.Context(), object))
	b.wantEvent("WriteRefused", "that name is not allowed")
	setRule("[]")
	b.comesTo(func() (string, bool) {
		err := b.client.Get(t.Context(), client.ObjectKeyFromObject(object), object)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

func TestAnUnknownAnnotationOfAComponentIsReportedByAnEvent(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.annotate(map[string]string{operatorName + "/drift-policy": "repair", "example.com/other": "x"})
	b.until(v1alpha1.StateReady)
	b.wantNoEvent("UnknownAnnotation")
	b.annotate(map[string]string{operatorName + "/aprove": "1", operatorName + "/apply-order": "1"})
	b.reconcile()
	b.wantEvent("UnknownAnnotation", operatorName+"/apply-order, "+operatorName+"/aprove; known are abandon, ")
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
			mgr := must(ctrl.NewManager(must(b.env.ConfigFor(b.user, "system:masters"))(t), ctrl.Options{
				Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
			}))(t)
			r := component.NewReconciler[*widget.Widget](operatorName, rendering(configMap("a", nil)), component.ReconcilerOptions{})
			b.check(r.SetupWithManager(mgr))
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
			if _, exists := b.configMap("a"); exists {
				t.Error("something was written that no record can be kept of")
			}

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

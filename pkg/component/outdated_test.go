// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
)

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
		{"no field for the state", "nostate.corbel.run", without("state"), "status.state"},
		{"no field for the revision", "norevision.corbel.run", without("revision"), "status.revision"},
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

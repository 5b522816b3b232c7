// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"fmt"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestAServerThatRefusesToStoreTheStatusIsReportedByAnEvent(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	scheme := installLoose(t, b)
	b.auditOptions.Component.Group = loose.Group
	object := looseWidget(b.namespace, "refused", map[string]any{"values": map[string]any{"a": "1"}})
	b.check(b.client.Create(t.Context(), object))
	manager := must(ctrl.NewManager(must(b.env.ConfigFor(b.user, "system:masters"))(t), ctrl.Options{
		Scheme: scheme, Metrics: metricsserver.Options{BindAddress: "0"}, Controller: config.Controller{SkipNameValidation: new(true)},
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	}))(t)
	b.check(component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}).SetupWithManager(manager))
	b.start(manager)
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
	b.until(component.StateReady)
	b.wantNoEvent("UnknownAnnotation")
	b.annotate(map[string]string{operatorName + "/aprove": "1", operatorName + "/apply-order": "1"})
	b.reconcile()
	b.wantEvent("UnknownAnnotation", operatorName+"/apply-order, "+operatorName+"/aprove; known are abandon, ")
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func (b *bench) request(objects ...client.Object) reconciler.ApplyRequest {
	return reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record, Confidential: b.confidential,
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
	for _, part := range []string{"ConfigMap " + b.namespace + "/credentials: Release", "APIService v1.apps: ", `the group "apps"`} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error does not say %q: %v", part, err)
		}
	}
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
	if _, err := b.engine.Apply(t.Context(), request); err == nil || !strings.Contains(err.Error(), "or is it") {
		t.Errorf("got %v", err)
	}
}

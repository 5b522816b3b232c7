// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestContextHoldsWhatWasPutIntoIt(t *testing.T) {
	target, local, component := fake.NewClientBuilder().Build(), fake.NewClientBuilder().Build(), &corev1.ConfigMap{}
	full := t.Context()
	full = manifests.WithClient(full, target)
	full = manifests.WithLocalClient(full, local)
	full = manifests.WithComponent(full, component)
	full = manifests.WithReconcilerName(full, "reconciler")
	full = manifests.WithComponentName(full, "name")
	full = manifests.WithComponentNamespace(full, "")
	full = manifests.WithComponentDigest(full, "digest")
	full = manifests.WithComponentRevision(full, 7)
	tests := []struct {
		want    any
		missing string
		get     func(context.Context) (any, error)
	}{
		{client.Client(target), "client of the target cluster", func(ctx context.Context) (any, error) { return manifests.ClientFromContext(ctx) }},
		{client.Client(local), "client of the local cluster", func(ctx context.Context) (any, error) { return manifests.LocalClientFromContext(ctx) }},
		{client.Object(component), "component", func(ctx context.Context) (any, error) { return manifests.ComponentFromContext(ctx) }},
		{"reconciler", "reconciler name", func(ctx context.Context) (any, error) { return manifests.ReconcilerNameFromContext(ctx) }},
		{"name", "component name", func(ctx context.Context) (any, error) { return manifests.ComponentNameFromContext(ctx) }},
		{"", "component namespace", func(ctx context.Context) (any, error) { return manifests.ComponentNamespaceFromContext(ctx) }},
		{"digest", "component digest", func(ctx context.Context) (any, error) { return manifests.ComponentDigestFromContext(ctx) }},
		{int64(7), "component revision", func(ctx context.Context) (any, error) { return manifests.ComponentRevisionFromContext(ctx) }},
	}
	for _, test := range tests {
		t.Run(test.missing, func(t *testing.T) {
			got, err := test.get(full)
			if err != nil || got != test.want {
				t.Errorf("got %v and the error %v, want %v", got, err, test.want)
			}
			_, err = test.get(t.Context())
			if want := fmt.Sprintf("the context holds no %s", test.missing); err == nil || err.Error() != want {
				t.Errorf("without the value: got the error %v, want %s", err, want)
			}
		})
	}
	for _, test := range []struct {
		ctx  context.Context
		want bool
	}{
		{t.Context(), true}, {full, false},
		{manifests.WithComponentRevision(t.Context(), 1), true},
		{manifests.WithComponentInstallation(full, true), true},
		{manifests.WithComponentInstallation(manifests.WithComponentRevision(t.Context(), 1), false), false},
	} {
		if got := manifests.IsComponentInstallation(test.ctx); got != test.want {
			t.Errorf("%v: got %v, want %v", test.ctx, got, test.want)
		}
	}
	if _, err := manifests.ClientFromContext(manifests.WithClient(t.Context(), nil)); err == nil {
		t.Error("a nil client is not missed")
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"reflect"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/pkg/manifests"
)

func TestContextHoldsWhatWasPutIntoIt(t *testing.T) {
	full := manifests.Context{
		ReconcilerName: "reconciler", Client: fake.NewClientBuilder().Build(), LocalClient: fake.NewClientBuilder().Build(),
		Component: &corev1.ConfigMap{}, Digest: "digest", Revision: 7, Upgrade: true, Preview: true,
	}
	if got := manifests.FromContext(full.In(t.Context())); got != full {
		t.Errorf("got %v, want %v", got, full)
	}
	for _, empty := range []manifests.Context{manifests.FromContext(t.Context()), manifests.FromContext(manifests.Context{}.In(full.In(t.Context())))} {
		if !reflect.ValueOf(empty).IsZero() {
			t.Errorf("got %v from a context that holds nothing", empty)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/pkg/component/internal/targets"
)

func TestWithoutADigestKeyNothingIsApplied(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	h.digestKey = targets.NewDigestKey(fake.NewFakeClient(&corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "operators", Name: "shop.example.com-digest-key"},
	}), client.ObjectKey{Namespace: "operators", Name: "shop.example.com-digest-key"})
	if _, err := h.createOrUpdate(t.Context(), newWidget(), noCommit); err == nil || len(engine.applied) > 0 {
		t.Errorf("error %v", err)
	}
	// But a component that has nothing to lose can go.
	if _, err := h.delete(t.Context(), deletedWidget(someInventory), noCommit); err == nil {
		t.Error("no error in deletion")
	}
	if _, err := h.delete(t.Context(), deleted(newWidget()), noCommit); err != nil {
		t.Errorf("in the deletion of an empty component: %v", err)
	}
}

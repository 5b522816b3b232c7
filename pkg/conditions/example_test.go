// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/conditions"
)

func Example() {
	var list []metav1.Condition // usually a field of the status
	obj := conditions.For(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 3}}, &list)
	now := time.Date(2026, 11, 1, 12, 0, 0, 0, time.UTC)

	conditions.MarkReconciling(obj, now, "Processing", "the shop is being built")
	conditions.MarkFalse(obj, now, "RoofTight", "Leaking", "%d tiles are missing", 3)
	conditions.SetSummary(obj, now, "Ready", conditions.WithConditions("RoofTight"))

	for _, c := range list {
		fmt.Println(c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	// Output:
	// Ready False Leaking 3 3 tiles are missing
	// Reconciling True Processing 3 the shop is being built
	// RoofTight False Leaking 3 3 tiles are missing
}

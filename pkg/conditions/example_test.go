// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package conditions_test

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/conditions"
)

func Example() {
	var list []metav1.Condition // usually a field of the status
	obj := conditions.For(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "shop", Generation: 3}}, &list)

	conditions.MarkReconciling(obj, "Processing", "the shop is being built")
	conditions.MarkFalse(obj, "RoofTight", "Leaking", "%d tiles are missing", 3)
	conditions.SetSummary(obj, "Ready", conditions.WithConditions("RoofTight"))

	for _, c := range list {
		fmt.Println(c.Type, c.Status, c.Reason, c.ObservedGeneration, c.Message)
	}
	// Output:
	// Ready False Leaking 3 3 tiles are missing
	// Reconciling True Processing 3 the shop is being built
	// RoofTight False Leaking 3 3 tiles are missing
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestARecordHoldsTheWholeObservation(t *testing.T) {
	full := plan.Observation{
		Existence: plan.Present, UID: "uid", ResourceVersion: "7", ObservedHash: "seen", Scaled: &plan.Scaling{Path: "spec.replicas", Replicas: 3, Manager: "kubectl"}, HasOwnerReferences: true, Finish: plan.FinishFailed,
		Ownership: plan.Ownership{
			OwnerID: "a", Ref: plan.OwnerRef{Group: "g", Kind: "K", Namespace: "n", Name: "o", UID: "u"},
			OtherOwners: []string{"Helm release shop/web", "inventory x"},
		},
		DeletionTimestamp: time.Unix(2000, 0), CreationTimestamp: time.Unix(1000, 0), Finalizers: []string{"x/y", "z"},
		Status: plan.Status{Readiness: plan.Failed, Message: "broken"},
	}
	for _, o := range []plan.Observation{full, {Existence: plan.Present, UID: "uid"}} {
		if d := cmp.Diff(o, recordOf(o).observation()); d != "" {
			t.Errorf("(-want +got):\n%s", d)
		}
	}
	fields := reflect.ValueOf(full)
	for i := range fields.NumField() {
		name := fields.Type().Field(i).Name
		if fields.Field(i).IsZero() && !slices.Contains([]string{"Message", "NotServed", "Forbidden", "Seal", "AppliedHash", "Drift", "Differs", "Deferred"}, name) {
			t.Errorf("it is not known whether %s is kept", name)
		}
	}
}

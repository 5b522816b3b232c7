// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestOutputsAreThoseOfObjectsOfTheOwner(t *testing.T) {
	owner := plan.Owner{ID: "main", Ref: plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "main", UID: "1"}}
	ours := plan.Ownership{OwnerID: owner.ID, Ref: owner.Ref}
	theirs := plan.Ownership{OwnerID: "other", Ref: plan.OwnerRef{Kind: "Shop", Namespace: "shop", Name: "other", UID: "2"}}
	const (
		value      = `{"self.a":{"value":"1","found":true}}`
		ofSecret   = `{"self.a":{"value":"1","found":true,"ofSecret":true}}`
		ofManifest = `{"self.a":{"value":"1","found":true,"ofManifest":true}}`
	)
	secretWasRead := confidential.Start(t.Context(), true)
	for name, test := range map[string]struct {
		ctx  context.Context
		live plan.Observation
		want Output
	}{
		"an object":               {t.Context(), plan.Observation{Existence: plan.Present, Ownership: ours, Status: plan.Status{Outputs: value}}, Output{Value: "1", Found: true}},
		"a Secret":                {t.Context(), plan.Observation{Existence: plan.Present, Ownership: ours, Status: plan.Status{Outputs: ofSecret}}, Output{Value: "1", Found: true, Secret: true}},
		"a manifest":              {t.Context(), plan.Observation{Existence: plan.Present, Ownership: ours, Status: plan.Status{Outputs: ofManifest}}, Output{Value: "1", Found: true}},
		"a manifest of a Secret":  {secretWasRead, plan.Observation{Existence: plan.Present, Ownership: ours, Status: plan.Status{Outputs: ofManifest}}, Output{Value: "1", Found: true, Secret: true}},
		"a status, with a Secret": {secretWasRead, plan.Observation{Existence: plan.Present, Ownership: ours, Status: plan.Status{Outputs: value}}, Output{Value: "1", Found: true}},
		"another owner":           {t.Context(), plan.Observation{Existence: plan.Present, Ownership: theirs, Status: plan.Status{Outputs: value}}, Output{}},
		"no owner":                {t.Context(), plan.Observation{Existence: plan.Present, Status: plan.Status{Outputs: value}}, Output{}},
		"other expressions":       {t.Context(), plan.Observation{Existence: plan.Present, Ownership: ours}, Output{Unknown: true}},
		"not read":                {t.Context(), plan.Observation{Existence: plan.NotFetched}, Output{Unknown: true}},
		"not there":               {t.Context(), plan.Observation{Existence: plan.Absent}, Output{Unknown: true}},
	} {
		t.Run(name, func(t *testing.T) {
			key := plan.Key{Kind: "ConfigMap", Namespace: "shop", Name: "a"}
			got := outputsOf(test.ctx, plan.Input{
				Owner: owner, Live: map[plan.Key]plan.Observation{key: test.live},
				Desired: []plan.Desired{{Key: key, Policies: policy.Set{Outputs: []policy.Output{{Name: "a", Expression: "self.a"}}}}},
			})
			test.want.Name = "a"
			if diff := cmp.Diff([]Output{test.want}, got); diff != "" {
				t.Errorf("outputs (-want +got):\n%s", diff)
			}
		})
	}
}

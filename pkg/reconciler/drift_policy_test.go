// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestUnderReportOnlyOwnershipMetadataAndAChangedManifestAreWritten(t *testing.T) {
	underEachUpdatePolicy(t, func(t *testing.T, b *bench, policy string) {
		options := []string{"update-policy", policy, "drift-policy", "report"}
		a, gone := config("a", "1", options...), config("b", "1", options...)
		b.mustApply(a, gone)
		b.edit("a", "theirs", "kubectl-edit")
		if err := b.Delete(t.Context(), b.get("b")); err != nil {
			t.Fatal(err)
		}
		for range 2 { // it is reported as long as it lasts
			outcome := b.mustApply(a, gone)
			if len(outcome.Steps) > 0 || len(outcome.Drifted) != 2 {
				t.Fatalf("steps %v, drifted %v", outcome.Steps, outcome.Drifted)
			}
			if first := outcome.Drifted[0]; first.Manager != "kubectl-edit" || first.At.IsZero() || strings.Join(first.Fields, " ") != "data.value" {
				t.Errorf("it says: %s", first)
			}
			if !outcome.Drifted[1].Missing {
				t.Errorf("it says: %s", outcome.Drifted[1])
			}
		}
		b.change("a", func(c *corev1.ConfigMap) { c.Labels, c.Annotations = nil, nil })
		outcome := b.mustApply(a, gone)
		if outcome.Steps["mark"] != 1 || len(outcome.Steps) != 1 {
			t.Errorf("steps %v, want our label and annotation restored", outcome.Steps)
		}
		if live := b.get("a"); live.Data["value"] != "theirs" || live.Labels[engineName+"/owner-id"] == "" || live.Annotations[engineName+"/owner"] == "" {
			t.Errorf("data %v, labels %v, annotations %v", live.Data, live.Labels, live.Annotations)
		}
		if b.get("b") != nil {
			t.Error("the deleted object was created again")
		}
		a, gone = config("a", "2", options...), config("b", "2", options...)
		b.mustApply(a, gone)
		if b.get("a").Data["value"] != "2" || b.get("b") == nil {
			t.Error("the changed manifests were not written")
		}
		b.expectRest(a, gone)
		if outcome, err := b.delete(); err != nil || !outcome.Done() || b.get("a") != nil {
			t.Errorf("delete: %v, waiting for %v", err, outcome.Waiting)
		}
	})
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func TestOfARecordMadeWithAnotherKeyStaysWhatWasNotHashedWithIt(t *testing.T) {
	kept := v1alpha1.InventoryItem{
		Kind: "Job", Name: "a", UID: "u1", Seal: "seal", Phase: vocabulary.PhaseCompleted, Finished: vocabulary.FinishComplete,
		Kept: []types.UID{"u2"}, Replicas: new(int64(3)),
	}
	for recorded, want := range map[string]string{
		"": "", "M": "?", "M+C": "?", "M@R": "?@R", "M+C@R": "?@R", "?": "?", "?@R": "?@R",
	} {
		before, after := kept, kept
		before.Digest, before.ObservedHash, before.AppliedHash, after.Digest = recorded, "seen", "accepted", want
		items := []v1alpha1.InventoryItem{before}
		if diff := cmp.Diff([]v1alpha1.InventoryItem{after}, Rekeyed(items)); diff != "" || items[0].Digest != recorded {
			t.Errorf("%q (-want +got):\n%s", recorded, diff)
		}
		if got := IsRekeyed(after); got != (want != "") {
			t.Errorf("%q is rekeyed: %t", want, got)
		}
	}
}

func TestAnUnknownManifestCountsAsTheSameButInAnotherRevision(t *testing.T) {
	for _, tt := range []struct {
		recorded, desired string
		same              bool
	}{
		{"?", "M", true},
		{"?", "M+C", true},
		{"?", "M@1", true},
		{"?@1", "M@1", true},
		{"?@1", "M+C@1", true},
		{"?@1", "M+C", true},
		{"?@1", "M@2", false},
		{"", "M", false},
	} {
		u := &unit{recorded: true, item: v1alpha1.InventoryItem{Digest: tt.recorded}, live: Observation{Status: Status{Readiness: Failed}}}
		u.setDesired(&Desired{Digest: tt.desired, Policies: policy.Set{DependsOn: []policy.Reference{{Kind: "ConfigMap", Name: "new"}}}})
		if u.isSame() != tt.same {
			t.Errorf("%s, then %s: same %t", tt.recorded, tt.desired, u.isSame())
		}
		if u.item.DependsOn != nil {
			t.Errorf("%s, then %s: it depends on %v before it is written", tt.recorded, tt.desired, u.item.DependsOn)
		}
	}
}

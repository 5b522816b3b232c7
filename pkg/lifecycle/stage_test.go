// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import "testing"

// TestStageOf is the whole truth table: the facts that are not in a row are false,
// and the policy is Manage unless it says otherwise.
func TestStageOf(t *testing.T) {
	const unknown = ManagementPolicy("unknown")
	for _, tc := range []struct {
		name string
		facts
		want Stage
	}{
		{"new", facts{}, StageClaim},
		{"ours", facts{claimed: true}, StageApply},
		{"suspended before it was claimed", facts{suspended: true}, StageSkip},
		{"suspended", facts{claimed: true, suspended: true}, StageSkip},
		{"detached is about deletion only", facts{claimed: true, detached: true}, StageApply},
		{"detached and new", facts{detached: true}, StageClaim},
		{"suspended and detached", facts{suspended: true, detached: true}, StageSkip},
		{"suspended and detached and ours", facts{claimed: true, suspended: true, detached: true}, StageSkip},
		{"deleted before it was claimed", facts{deleting: true}, StageIgnore},
		{"deleted before it was claimed, suspended", facts{deleting: true, suspended: true}, StageIgnore},
		{"deleted before it was claimed, detached", facts{deleting: true, detached: true}, StageIgnore},
		{"deleted", facts{deleting: true, claimed: true}, StageDelete},
		{"deleted while suspended", facts{deleting: true, claimed: true, suspended: true}, StageDelete},
		{"deleted and detached", facts{deleting: true, claimed: true, detached: true}, StageRelease},
		{"deleted, detached and suspended", facts{deleting: true, claimed: true, detached: true, suspended: true}, StageRelease},

		{"skip and new: not even claimed", facts{policy: Skip}, StageSkip},
		{"skip", facts{claimed: true, policy: Skip}, StageSkip},
		{"skip and suspended", facts{claimed: true, suspended: true, policy: Skip}, StageSkip},
		{"skip, deleted before it was claimed", facts{deleting: true, policy: Skip}, StageIgnore},
		{"skip and deleted: left behind", facts{deleting: true, claimed: true, policy: Skip}, StageRelease},
		{"skip, deleted and suspended", facts{deleting: true, claimed: true, suspended: true, policy: Skip}, StageRelease},

		{"detach-on-delete and new", facts{policy: DetachOnDelete}, StageClaim},
		{"detach-on-delete", facts{claimed: true, policy: DetachOnDelete}, StageApply},
		{"detach-on-delete and suspended", facts{claimed: true, suspended: true, policy: DetachOnDelete}, StageSkip},
		{"detach-on-delete, deleted before it was claimed", facts{deleting: true, policy: DetachOnDelete}, StageIgnore},
		{"detach-on-delete and deleted: left behind", facts{deleting: true, claimed: true, policy: DetachOnDelete}, StageRelease},
		{"detach-on-delete, deleted and suspended", facts{deleting: true, claimed: true, suspended: true, policy: DetachOnDelete}, StageRelease},

		{"unknown policy and new", facts{policy: unknown}, StageHold},
		{"unknown policy", facts{claimed: true, policy: unknown}, StageHold},
		{"unknown policy and suspended", facts{claimed: true, suspended: true, policy: unknown}, StageHold},
		{"unknown policy and deleted", facts{deleting: true, claimed: true, policy: unknown}, StageHold},
		{"unknown policy, deleted before it was claimed", facts{deleting: true, policy: unknown}, StageIgnore},
		{"unknown policy, deleted and detached: the handler's word is enough", facts{deleting: true, claimed: true, detached: true, policy: unknown}, StageRelease},

		{"somebody else's", facts{elsewhere: true}, StageIgnore},
		{"somebody else's with a finalizer like ours", facts{elsewhere: true, claimed: true}, StageIgnore},
		{"somebody else's under deletion", facts{elsewhere: true, claimed: true, deleting: true}, StageIgnore},
		{"somebody else's under deletion, to be left behind", facts{elsewhere: true, claimed: true, deleting: true, detached: true, policy: DetachOnDelete}, StageIgnore},
		{"somebody else's, suspended", facts{elsewhere: true, claimed: true, suspended: true}, StageIgnore},
		{"somebody else's under an unknown policy", facts{elsewhere: true, claimed: true, policy: unknown}, StageIgnore},
	} {
		switch tc.policy {
		case "":
			tc.policy = Manage
		case unknown:
			tc.policy = ""
		}
		if got := stageOf(tc.facts); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// everyFact calls f with every combination of facts.
func everyFact(f func(facts)) {
	for bits := range 32 {
		for _, policy := range []ManagementPolicy{"", Manage, Skip, DetachOnDelete} {
			f(facts{
				elsewhere: bits&1 != 0, deleting: bits&2 != 0, claimed: bits&4 != 0,
				suspended: bits&8 != 0, detached: bits&16 != 0, policy: policy,
			})
		}
	}
}

// TestStagesKeepTheirPromises holds for all 128 combinations of facts.
func TestStagesKeepTheirPromises(t *testing.T) {
	everyFact(func(f facts) {
		stage := stageOf(f)
		acts := stage == StageClaim || stage == StageApply || stage == StageDelete
		for promise, broken := range map[string]bool{
			"an object of somebody else is left alone":          f.elsewhere && stage != StageIgnore,
			"nothing is done while the policy is unknown":       f.policy == "" && acts,
			"skip creates, updates and deletes nothing":         f.policy == Skip && acts,
			"detach-on-delete deletes nothing":                  f.policy == DetachOnDelete && stage == StageDelete,
			"suspension creates and updates nothing":            f.suspended && (stage == StageClaim || stage == StageApply),
			"suspension does not hold up a deletion":            f.deleting && stage == StageSkip,
			"no finalizer is added to an object under deletion": f.deleting && stage == StageClaim,
			"an object that is not claimed is neither applied":  !f.claimed && stage == StageApply,
			"nor deleted": !f.claimed && (stage == StageDelete || stage == StageRelease),
			"nothing is deleted or released that nobody deletes":     !f.deleting && (stage == StageDelete || stage == StageRelease),
			"what the handler wants to leave behind can always go":   f.deleting && f.claimed && f.detached && !f.elsewhere && stage != StageRelease,
			"an object of ours that nobody deletes is never ignored": !f.deleting && !f.elsewhere && stage == StageIgnore,
		} {
			if broken {
				t.Errorf("%s: %+v gives %s", promise, f, stage)
			}
		}
	})
}

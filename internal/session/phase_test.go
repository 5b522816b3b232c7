// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package session

import (
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TestStageOf is the whole truth table: the facts that are not in a row are false,
// and the policy is manage unless it says otherwise.
func TestStageOf(t *testing.T) {
	const unknown = v1alpha1.ManagementPolicy("unknown")
	for _, tc := range []struct {
		name string
		facts
		want Phase
	}{
		{"new", facts{}, PhaseClaim},
		{"ours", facts{claimed: true}, PhaseApply},
		{"suspended before it was claimed", facts{suspended: true}, PhaseSkip},
		{"suspended", facts{claimed: true, suspended: true}, PhaseSkip},
		{"detached is about deletion only", facts{claimed: true, orphan: true}, PhaseApply},
		{"detached and new", facts{orphan: true}, PhaseClaim},
		{"suspended and detached", facts{suspended: true, orphan: true}, PhaseSkip},
		{"suspended and detached and ours", facts{claimed: true, suspended: true, orphan: true}, PhaseSkip},
		{"deleted before it was claimed", facts{deleting: true}, PhaseIgnore},
		{"deleted before it was claimed, suspended", facts{deleting: true, suspended: true}, PhaseIgnore},
		{"deleted before it was claimed, detached", facts{deleting: true, orphan: true}, PhaseIgnore},
		{"deleted", facts{deleting: true, claimed: true}, PhaseDelete},
		{"deleted while suspended", facts{deleting: true, claimed: true, suspended: true}, PhaseDelete},
		{"deleted and detached", facts{deleting: true, claimed: true, orphan: true}, PhaseFinalize},
		{"deleted, detached and suspended", facts{deleting: true, claimed: true, orphan: true, suspended: true}, PhaseFinalize},

		{"skip and new: not even claimed", facts{policy: v1alpha1.ManagementPolicySkip}, PhaseSkip},
		{"skip", facts{claimed: true, policy: v1alpha1.ManagementPolicySkip}, PhaseSkip},
		{"skip and suspended", facts{claimed: true, suspended: true, policy: v1alpha1.ManagementPolicySkip}, PhaseSkip},
		{"skip, deleted before it was claimed", facts{deleting: true, policy: v1alpha1.ManagementPolicySkip}, PhaseIgnore},
		{"skip and deleted: orphaned", facts{deleting: true, claimed: true, policy: v1alpha1.ManagementPolicySkip}, PhaseFinalize},
		{"skip, deleted and suspended", facts{deleting: true, claimed: true, suspended: true, policy: v1alpha1.ManagementPolicySkip}, PhaseFinalize},

		{"detach-on-delete and new", facts{policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseClaim},
		{"detach-on-delete", facts{claimed: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseApply},
		{"detach-on-delete and suspended", facts{claimed: true, suspended: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseSkip},
		{"detach-on-delete, deleted before it was claimed", facts{deleting: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseIgnore},
		{"detach-on-delete and deleted: orphaned", facts{deleting: true, claimed: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseFinalize},
		{"detach-on-delete, deleted and suspended", facts{deleting: true, claimed: true, suspended: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseFinalize},

		{"unknown policy and new", facts{policy: unknown}, PhasePaused},
		{"unknown policy", facts{claimed: true, policy: unknown}, PhasePaused},
		{"unknown policy and suspended", facts{claimed: true, suspended: true, policy: unknown}, PhasePaused},
		{"unknown policy and deleted", facts{deleting: true, claimed: true, policy: unknown}, PhasePaused},
		{"unknown policy, deleted before it was claimed", facts{deleting: true, policy: unknown}, PhaseIgnore},
		{"unknown policy, deleted and orphan: the handler's word is enough", facts{deleting: true, claimed: true, orphan: true, policy: unknown}, PhaseFinalize},

		{"another client's", facts{elsewhere: true}, PhaseIgnore},
		{"another client's with a finalizer like ours", facts{elsewhere: true, claimed: true}, PhaseIgnore},
		{"another client's under deletion", facts{elsewhere: true, claimed: true, deleting: true}, PhaseIgnore},
		{"another client's under deletion, to be orphaned", facts{elsewhere: true, claimed: true, deleting: true, orphan: true, policy: v1alpha1.ManagementPolicyDetachOnDelete}, PhaseIgnore},
		{"another client's, suspended", facts{elsewhere: true, claimed: true, suspended: true}, PhaseIgnore},
		{"another client's under an unknown policy", facts{elsewhere: true, claimed: true, policy: unknown}, PhaseIgnore},
	} {
		switch tc.policy {
		case "":
			tc.policy = v1alpha1.ManagementPolicyManage
		case unknown:
			tc.policy = ""
		}
		if got := phaseOf(tc.facts); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
}

// everyFact calls f with every combination of facts.
func everyFact(f func(facts)) {
	for bits := range 32 {
		for _, policy := range []v1alpha1.ManagementPolicy{"", v1alpha1.ManagementPolicyManage, v1alpha1.ManagementPolicySkip, v1alpha1.ManagementPolicyDetachOnDelete} {
			f(facts{
				elsewhere: bits&1 != 0, deleting: bits&2 != 0, claimed: bits&4 != 0,
				suspended: bits&8 != 0, orphan: bits&16 != 0, policy: policy,
			})
		}
	}
}

// TestStagesKeepTheirPromises holds for all 128 combinations of facts.
func TestStagesKeepTheirPromises(t *testing.T) {
	everyFact(func(f facts) {
		phase := phaseOf(f)
		acts := phase == PhaseClaim || phase == PhaseApply || phase == PhaseDelete
		for promise, broken := range map[string]bool{
			"an object of another client is left alone":         f.elsewhere && phase != PhaseIgnore,
			"nothing is done while the policy is unknown":       f.policy == "" && acts,
			"skip creates, updates and deletes nothing":         f.policy == v1alpha1.ManagementPolicySkip && acts,
			"detach-on-delete deletes nothing":                  f.policy == v1alpha1.ManagementPolicyDetachOnDelete && phase == PhaseDelete,
			"suspension creates and updates nothing":            f.suspended && (phase == PhaseClaim || phase == PhaseApply),
			"suspension does not hold up a deletion":            f.deleting && phase == PhaseSkip,
			"no finalizer is added to an object under deletion": f.deleting && phase == PhaseClaim,
			"an object that is not claimed is neither applied":  !f.claimed && phase == PhaseApply,
			"nor deleted": !f.claimed && (phase == PhaseDelete || phase == PhaseFinalize),
			"nothing is deleted or finalized that is not being deleted":    !f.deleting && (phase == PhaseDelete || phase == PhaseFinalize),
			"an object that the handler orphans can always be finalized":   f.deleting && f.claimed && f.orphan && !f.elsewhere && phase != PhaseFinalize,
			"an object of ours that is not being deleted is never ignored": !f.deleting && !f.elsewhere && phase == PhaseIgnore,
		} {
			if broken {
				t.Errorf("%s: %+v gives %s", promise, f, phase)
			}
		}
	})
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external

import (
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

// TestDecide is the whole truth table: what is not said in a row is false.
func TestDecide(t *testing.T) {
	const creating, created = PhaseCreating, PhaseCreated
	for _, tc := range []struct {
		name string
		facts
		want action
	}{
		{"nothing on record", facts{}, actCreate},
		{"nothing on record, whatever was seen", facts{exists: true, upToDate: true}, actCreate},
		{"nothing on record, not idempotent", facts{notIdempotent: true, expired: true}, actCreate},
		{"the first Create may be under way", facts{phase: creating}, actRepeat},
		{"the first Create has expired without an effect", facts{phase: creating, expired: true}, actRepeat},
		{"it may be under way, and must not be repeated", facts{phase: creating, notIdempotent: true}, actWait},
		{"it has expired, and may be repeated now", facts{phase: creating, notIdempotent: true, expired: true}, actRepeat},
		{"it took effect", facts{phase: creating, exists: true, upToDate: true}, actNothing},
		{"it took effect, not idempotent", facts{phase: creating, exists: true, upToDate: true, notIdempotent: true}, actNothing},
		{"it took effect, the object changed meanwhile", facts{phase: creating, exists: true}, actUpdate},
		{"it took effect, the API is at work", facts{phase: creating, exists: true, inProgress: true}, actAwait},
		{"as it should be", facts{phase: created, exists: true, upToDate: true, expired: true}, actNothing},
		{"as it should be, before the Create has expired", facts{phase: created, exists: true, upToDate: true}, actNothing},
		{"not up to date", facts{phase: created, exists: true, expired: true}, actUpdate},
		{"at work", facts{phase: created, exists: true, inProgress: true, expired: true}, actAwait},
		{"at work on what is up to date", facts{phase: created, exists: true, upToDate: true, inProgress: true, expired: true}, actAwait},
		{"gone", facts{phase: created, expired: true}, actCreate},
		{"gone, not idempotent", facts{phase: created, expired: true, notIdempotent: true}, actCreate},
		{"gone, or not visible yet", facts{phase: created}, actWait},
		{"gone, or not visible yet, not idempotent", facts{phase: created, notIdempotent: true}, actWait},
		{"a phase of a later version, there", facts{phase: "Later", exists: true, upToDate: true}, actNothing},
		{"a phase of a later version, not there", facts{phase: "Later"}, actWait},

		{"deleted before anything was made", facts{deleting: true}, actNothing},
		{"deleted while the Create may be under way", facts{deleting: true, phase: creating}, actWait},
		{"deleted, and the Create had no effect", facts{deleting: true, phase: creating, expired: true}, actNothing},
		{"deleted, and the Create took effect", facts{deleting: true, phase: creating, exists: true}, actDelete},
		{"deleted, and the Create took effect late", facts{deleting: true, phase: creating, exists: true, expired: true}, actDelete},
		{"deleted", facts{deleting: true, phase: created, exists: true, upToDate: true, expired: true}, actDelete},
		{"deleted while out of date", facts{deleting: true, phase: created, exists: true, expired: true}, actDelete},
		{"deleted while the API is at work", facts{deleting: true, phase: created, exists: true, inProgress: true, expired: true}, actDelete},
		{"gone, and nothing can come any more", facts{deleting: true, phase: created, expired: true}, actNothing},
		{"gone, and another Create may be under way", facts{deleting: true, phase: created}, actWait},
		{"gone, not idempotent", facts{deleting: true, phase: created, expired: true, notIdempotent: true}, actNothing},
	} {
		check.SameNamed(t, tc.name, tc.want, decide(tc.facts))
	}
}

// TestDecisionsKeepTheirPromises holds for all combinations of facts.
func TestDecisionsKeepTheirPromises(t *testing.T) {
	for bits := range 64 {
		for _, phase := range []Phase{"", PhaseCreating, PhaseCreated} {
			f := facts{
				deleting: bits&1 != 0, exists: bits&2 != 0, upToDate: bits&4 != 0, inProgress: bits&8 != 0,
				expired: bits&16 != 0, notIdempotent: bits&32 != 0, phase: phase,
			}
			act := decide(f)
			creates := act == actCreate || act == actRepeat
			for promise, broken := range map[string]bool{
				"nothing is created in deletion":                               f.deleting && (creates || act == actUpdate),
				"nothing is deleted in life":                                   !f.deleting && act == actDelete,
				"what is on record and there is not created":                   f.exists && f.phase != "" && creates,
				"a token is drawn only if no Create of another can come":       act == actCreate && f.phase != "" && !f.expired,
				"an attempt of unknown outcome is not given up":                act == actCreate && f.phase == PhaseCreating,
				"what must not be repeated is not":                             act == actRepeat && f.notIdempotent && !f.expired,
				"a deletion does not end while something is there or may come": f.deleting && act == actNothing && f.phase != "" && (f.exists || !f.expired),
				"a life without a resource is not done":                        !f.deleting && act == actNothing && !f.exists,
				"what has expired is not waited for":                           act == actWait && f.expired && phase != "",
			} {
				if broken {
					t.Errorf("%s: %+v gives %s", promise, f, act)
				}
			}
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package shared

import (
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

// TestOfTwoVersionsOfASharedTypeTheHigherOneStays has each state that a shared definition may be found in.
func TestOfTwoVersionsOfASharedTypeTheHigherOneStays(t *testing.T) {
	want := Mark{Hash: "new", Version: "1.10.0"}
	live := func(mark string) plan.Observation {
		return plan.Observation{Existence: plan.Present, UID: "1", ResourceVersion: "7", Shared: mark}
	}
	owned := func(ownership plan.Ownership) plan.Observation {
		o := live("")
		o.Ownership = ownership
		return o
	}
	marked := owned(plan.Ownership{OtherOwners: []string{"Helm release shop/web"}})
	marked.Shared = "old 1.0.0"
	terminating := live("old 1.0.0")
	terminating.DeletionTimestamp = time.Unix(1, 0)
	component := plan.Ownership{OwnerID: "abc", Ref: plan.OwnerRef{Kind: "Shop", Name: "main", UID: "5"}}
	replace := func(reason plan.Reason) Decision { return Decision{Verb: plan.VerbReplace, Reason: reason} }
	tests := []struct {
		name string
		in   Input
		want Decision
		note string
	}{
		{"it does not exist", Input{Live: plan.Observation{Existence: plan.Absent}}, Decision{Verb: plan.VerbCreate, Reason: plan.ReasonMissing}, ""},
		{"it was not read", Input{Live: plan.Observation{Existence: plan.NotFetched}}, Decision{Verb: plan.VerbCreate, Reason: plan.ReasonMissing}, ""},
		{"it does not exist, and is created once", Input{Live: plan.Observation{Existence: plan.Absent}, Once: true}, Decision{Verb: plan.VerbCreate, Reason: plan.ReasonMissing}, ""},
		{"it does not exist, and the content is not known", Input{Live: plan.Observation{Existence: plan.Absent}, ReadOnly: true}, Decision{Missing: true}, ""},
		{"it cannot be read at the moment", Input{Live: plan.Observation{Message: "cannot be read"}, Served: true}, Decision{}, ""},
		{"it may not be read, and is not served", Input{Live: plan.Observation{Forbidden: true}}, Decision{}, ""},
		{"it may not be read, and is served", Input{Live: plan.Observation{Forbidden: true, Message: "cannot be read"}, Served: true}, Decision{Used: true}, "used as it is: it cannot be read"},
		{"it is being deleted", Input{Live: terminating}, Decision{}, ""},
		{"nobody owns it", Input{Live: live("")}, replace(plan.ReasonAdopted), ""},
		{"nobody owns it, and it is created once", Input{Live: live(""), Once: true}, Decision{}, ""},
		{"a component of this reconciler owns it", Input{Live: owned(component)}, replace(plan.ReasonAdopted), ""},
		{"Helm owns it", Input{Live: owned(plan.Ownership{OtherOwners: []string{"Helm release shop/web"}})}, Decision{}, "belongs to Helm release shop/web"},
		{"Helm owns it, too", Input{Live: marked}, Decision{}, "belongs to Helm release shop/web"},
		{"another object controls it", Input{Live: owned(plan.Ownership{Controller: plan.Controller{Kind: "Installer", Name: "main", UID: "9"}})}, Decision{}, "belongs to its controller Installer main"},
		{"its version is lower", Input{Live: live("old 1.9.0")}, replace(plan.ReasonManifestChanged), ""},
		{"its version is a candidate", Input{Live: live("old 1.10.0-rc.1")}, replace(plan.ReasonManifestChanged), ""},
		{"its version is lower, and the content is the same", Input{Live: live("new 1.9.0")}, replace(plan.ReasonManifestChanged), ""},
		{"its version is lower, and it is created once", Input{Live: live("old 1.9.0"), Once: true}, Decision{}, ""},
		{"its version is lower, and the content is not known", Input{Live: live("old 1.9.0"), ReadOnly: true}, Decision{}, ""},
		{"its version is higher", Input{Live: live("old 2.0.0"), Drifted: true}, Decision{}, "it is that of version 2.0.0, and this operator has version 1.10.0"},
		{"its version is none", Input{Live: live("old edge")}, replace(plan.ReasonManifestChanged), ""},
		{"its content is another one", Input{Live: live("old 1.10.0")}, replace(plan.ReasonManifestChanged), ""},
		{"its content is another one again", Input{Live: live("old 1.10.0"), Written: true}, Decision{}, "another process replaces what this one has written"},
		{"a lower version is there again", Input{Live: live("old 1.9.0"), Written: true}, replace(plan.ReasonManifestChanged), ""},
		{"it is as it should be", Input{Live: live("new 1.10.0"), Written: true}, Decision{}, ""},
		{"it is another build of the same version", Input{Live: live("new 1.10.0+5")}, Decision{}, ""},
		{"it has drifted", Input{Live: live("new 1.10.0"), Written: true, Drifted: true}, replace(plan.ReasonDrifted), ""},
		{"it has drifted, and is created once", Input{Live: live("new 1.10.0"), Once: true, Drifted: true}, Decision{}, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			test.in.Want = want
			got := Decide(test.in)
			note := got.Note
			if got.Note = ""; got != test.want || !strings.Contains(note, test.note) || (note == "") != (test.note == "") {
				t.Errorf("%+v with the note %q, not %+v with %q", got, note, test.want, test.note)
			}
		})
	}
}

// TestTheMarkOfASharedType writes marks and reads them.
func TestTheMarkOfASharedType(t *testing.T) {
	for text, mark := range map[string]Mark{"abc 1.2.3": {"abc", "1.2.3"}, "abc": {"abc", ""}, "": {}} {
		if got := ParseMark(text); got != mark || mark.String() != text {
			t.Errorf("%q is %+v, and %+v is %q", text, got, mark, mark.String())
		}
	}
	check.SameNamed(t, "no version and no version", 0, compare("", ""))
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

// enumerate runs a case for each kind of API and at each request of a life, and, if twice is set, once before
// and once after it. In a case, time passes when all wait.
func enumerate(t *testing.T, twice bool, run func(t *testing.T, forgetful bool, at int, after bool) (met bool)) {
	t.Helper()
	for _, forgetful := range []bool{false, true} {
		whole, cases, met := &wire.Gate{}, 0, 0
		synctest.Test(t, func(t *testing.T) {
			check.NoError(t, newStory(t, forgetful).start(whole).live())
		})
		for i, request := range whole.Requests() {
			for _, after := range []bool{false, true} {
				if after && !twice {
					continue
				}
				cases++
				t.Run(fmt.Sprintf("the API knows no tokens: %t, request %d %s, answered %t", forgetful, i+1, request, after), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						if run(t, forgetful, i+1, after) {
							met++
						}
					})
				})
			}
		}
		if met < cases*3/4 {
			t.Errorf("only %d of %d cases met their request", met, cases)
		}
	}
}

// TestServerAndBankSeeOneRoomIfTheProcessStopsAtAnyRequest kills the operator before and
// after every request to the API server and to the bank; another one goes on.
func TestServerAndBankSeeOneRoomIfTheProcessStopsAtAnyRequest(t *testing.T) {
	enumerate(t, true, func(t *testing.T, forgetful bool, at int, after bool) bool {
		s := newStory(t, forgetful)
		g := &wire.Gate{At: at, After: after}
		if err := s.start(g).live(); err == nil {
			return g.HasCrashed()
		}
		check.NoError(t, s.start(&wire.Gate{}).live())
		return true
	})
}

// TestServerAndBankSeeOneRoomIfAnyRequestFails lets one request fail, before it took effect and
// after; the process goes on.
func TestServerAndBankSeeOneRoomIfAnyRequestFails(t *testing.T) {
	enumerate(t, true, func(t *testing.T, forgetful bool, at int, after bool) bool {
		met := false
		g := &wire.Gate{At: at, After: after, Happens: func() error { met = true; return errLost }}
		check.NoError(t, newStory(t, forgetful).start(g).live())
		return met
	})
}

// TestServerAndBankSeeOneRoomIfAnotherClientInterferesAtAnyRequest lets another client write to
// the vault, in each of several ways, before every request.
func TestServerAndBankSeeOneRoomIfAnotherClientInterferesAtAnyRequest(t *testing.T) {
	for name, interfere := range map[string]func(*story){
		"a label":           func(s *story) { s.change(func(v *vault) { v.Labels = map[string]string{"a": "b"} }) },
		"an annotation":     func(s *story) { s.change(func(v *vault) { v.Annotations = map[string]string{"a": "b"} }) },
		"the spec":          func(s *story) { s.change(func(v *vault) { v.Spec.Size += 10 }) },
		"a condition":       func(s *story) { s.changeStatus(audited) },
		"a deletion":        func(s *story) { s.gone = s.gone || s.get() != nil; s.delete() },
		"the policy skip":   func(s *story) { s.briefly("skip") },
		"an unknown policy": func(s *story) { s.briefly("none") },
	} {
		t.Run(name, func(t *testing.T) {
			enumerate(t, false, func(t *testing.T, forgetful bool, at int, _ bool) bool {
				s, met := newStory(t, forgetful), false
				g := &wire.Gate{At: at, Happens: func() error { met = true; interfere(s); return nil }}
				check.NoError(t, s.start(g).live())
				return met
			})
		})
	}
}

// audited adds a condition of another client.
func audited(v *vault) {
	v.Status.Conditions = append(v.Status.Conditions, metav1.Condition{Type: "Audited", Status: "True", Reason: "Audited", LastTransitionTime: metav1.Now()})
}

// briefly sets a management policy for the duration of one reconcile of another process.
func (s *story) briefly(policy string) {
	const annotation = "test.corbel.run/management-policy"
	if v := s.get(); policy == "skip" && v != nil && v.DeletionTimestamp != nil {
		return // it would be orphaned, as that says
	}
	s.change(func(v *vault) { v.Annotations = map[string]string{annotation: policy} })
	defer s.change(func(v *vault) { delete(v.Annotations, annotation) })
	if err := s.start(&wire.Gate{}).step(); err != nil {
		s.Error(err)
	}
}

func TestServerSeesOneStatusWriteForEachReconcileBesideTheIntent(t *testing.T) {
	s, g := newStory(t, false), &wire.Gate{}
	p := s.start(g)
	expect := func(when string, want ...string) {
		t.Helper()
		if diff := cmp.Diff(want, g.Requests()); diff != "" {
			t.Errorf("part %d, %s (-want +got):\n%s", s.part, when, diff)
		}
		g.Aim(0, false, nil)
	}
	for _, want := range [][]string{
		// The claim, the intent and the outcome.
		{"get", "patch", "patch status", "create", "observe", "patch status"},
		{"get", "observe", "update", "observe", "patch status"},
		{"get", "observe", "delete", "observe", "patch"},
	} {
		s.act()
		check.NoError(t, p.work())
		expect("at work", want...)
		if s.part == 3 {
			return
		}
		check.NoError(t, p.step())
		expect("at rest", "get", "observe")
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// banks are the kinds of API.
func banks(t *testing.T, f func(t *testing.T, forgetful bool)) {
	t.Helper()
	t.Run("an API that knows tokens", func(t *testing.T) { f(t, false) })
	t.Run("an API that does not", func(t *testing.T) { f(t, true) })
}

// enumerate runs a case at every request of a life, and, if twice is set, once before
// and once after it.
func enumerate(t *testing.T, forgetful, twice bool, run func(t *testing.T, at int, after bool) (met bool)) {
	t.Helper()
	total, ran, met := length(t, forgetful), 0, 0
	index := 0
	for at := 1; at <= total; at++ {
		for _, after := range []bool{false, true} {
			if after && !twice {
				continue
			}
			if index++; !slice.FromEnvironment(t).Has(index) {
				continue
			}
			ran++
			t.Run(fmt.Sprintf("request %d, answered %t", at, after), func(t *testing.T) {
				if run(t, at, after) {
					met++
				}
			})
		}
	}
	t.Logf("%d requests, %d cases, %d of them run, %d met", total, index, ran, met)
	if met < ran*3/4 {
		t.Errorf("only %d of %d cases met their request", met, ran)
	}
}

// TestServerAndBankSeeOneRoomIfTheProcessStopsAtAnyRequest kills the operator before and
// after every request to the API server and to the bank; another one goes on.
func TestServerAndBankSeeOneRoomIfTheProcessStopsAtAnyRequest(t *testing.T) {
	banks(t, func(t *testing.T, forgetful bool) {
		enumerate(t, forgetful, true, func(t *testing.T, at int, after bool) bool {
			s := newStory(t, forgetful)
			g := &wire.Gate{At: at, After: after}
			if err := s.start(g).live(); err == nil {
				return g.HasCrashed()
			}
			if err := s.start(&wire.Gate{}).live(); err != nil {
				t.Fatal(err)
			}
			return true
		})
	})
}

// TestServerAndBankSeeOneRoomIfAnyRequestFails lets one request fail, before it took effect and
// after; the process goes on.
func TestServerAndBankSeeOneRoomIfAnyRequestFails(t *testing.T) {
	banks(t, func(t *testing.T, forgetful bool) {
		enumerate(t, forgetful, true, func(t *testing.T, at int, after bool) bool {
			met := false
			g := &wire.Gate{At: at, After: after, Happens: func() error { met = true; return errLost }}
			if err := newStory(t, forgetful).start(g).live(); err != nil {
				t.Fatal(err)
			}
			return met
		})
	})
}

// TestServerAndBankSeeOneRoomIfAnotherClientInterferesAtAnyRequest lets another client write to
// the vault, in each of several ways, before every request.
func TestServerAndBankSeeOneRoomIfAnotherClientInterferesAtAnyRequest(t *testing.T) {
	for name, interfere := range map[string]func(*story) error{
		"a label":           func(s *story) error { return s.change(func(v *vault) { v.Labels = map[string]string{"a": "b"} }) },
		"an annotation":     func(s *story) error { return s.change(func(v *vault) { v.Annotations = map[string]string{"a": "b"} }) },
		"the spec":          func(s *story) error { return s.change(func(v *vault) { v.Spec.Size += 10 }) },
		"a condition":       foreignCondition,
		"a deletion":        deletion,
		"the policy skip":   func(s *story) error { return s.briefly("skip") },
		"an unknown policy": func(s *story) error { return s.briefly("none") },
	} {
		t.Run(name, func(t *testing.T) {
			banks(t, func(t *testing.T, forgetful bool) {
				enumerate(t, forgetful, false, func(t *testing.T, at int, _ bool) bool {
					s, met := newStory(t, forgetful), false
					g := &wire.Gate{At: at, Happens: func() error { met = true; return interfere(s) }}
					if err := s.start(g).live(); err != nil {
						t.Fatal(err)
					}
					return met
				})
			})
		})
	}
}

func foreignCondition(s *story) error {
	v := s.get()
	if v == nil {
		return nil
	}
	v.Status.Conditions = append(v.Status.Conditions, metav1.Condition{Type: "Audited", Status: "True", Reason: "Audited", LastTransitionTime: metav1.Now()})
	return s.user.Status().Update(s.Context(), v)
}

func deletion(s *story) error {
	if v := s.get(); v != nil {
		s.gone.Store(true)
		return s.user.Delete(s.Context(), v)
	}
	return nil
}

// briefly sets a management policy for the duration of one reconcile.
func (s *story) briefly(policy string) error {
	const annotation = "test.corbel.run/management-policy"
	if v := s.get(); policy == "skip" && v != nil && v.DeletionTimestamp != nil {
		return nil // it would be orphaned, as that says
	}
	set := func(value string) error {
		return s.change(func(v *vault) {
			delete(v.Annotations, annotation)
			if value != "" {
				v.Annotations = map[string]string{annotation: value}
			}
		})
	}
	if err := set(policy); err != nil {
		return err
	}
	defer func() { _ = set("") }()
	other := s.start(&wire.Gate{})
	return other.step()
}

// take returns the requests since the last call, in short.
func take(g *wire.Gate) (requests []string) {
	for _, request := range g.Requests() {
		method, path, _ := strings.Cut(request, " ")
		if strings.HasSuffix(path, "/status") {
			method += " status"
		}
		requests = append(requests, method)
	}
	g.Aim(0, false, nil)
	return requests
}

func TestServerSeesOneStatusWriteForEachReconcileBesideTheIntent(t *testing.T) {
	s, g := newStory(t, false), &wire.Gate{}
	p := s.start(g)
	for _, want := range [][]string{
		// The claim, the intent and the outcome.
		{"GET", "PATCH", "PATCH status", "create", "observe", "PATCH status"},
		{"GET", "observe", "update", "observe", "PATCH status"},
		{"GET", "observe", "delete", "observe", "PATCH"},
	} {
		s.act()
		if err := p.work(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, take(g)); diff != "" {
			t.Errorf("part %d (-want +got):\n%s", s.part, diff)
		}
		if s.part == 3 {
			return
		}
		if err := p.step(); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"GET", "observe"}, take(g)); diff != "" {
			t.Errorf("part %d, at rest (-want +got):\n%s", s.part, diff)
		}
	}
}

func TestACreateIsNotSentIfItsRecordTookTooLong(t *testing.T) {
	b := newBranch(t, external.Options{}, nil)
	b.tick = func() { b.now = b.now.Add(time.Minute) } // the machine stands still after each look at the clock
	v, _, err := b.reconcile()
	if err != nil {
		t.Error(err)
	}
	b.want(v, "Processing", "Creating", 0, 0)
	b.tick = nil
	v, _, _ = b.reconcile()
	b.want(v, "Ready", "Created", 1, 1)
}

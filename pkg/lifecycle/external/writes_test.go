// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/wire"
)

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

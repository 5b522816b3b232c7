// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/slice"
	"github.com/corbel-run/corbel/test/wire"
)

// TestServerAndBankSeeOneRoomIfAReplicaStandsStillAtAnyRequest lets a replica stand still
// before or after a request while another one works, either to the end of the vault's life or
// until what the user asked for last is the case. Then the first one goes on.
func TestServerAndBankSeeOneRoomIfAReplicaStandsStillAtAnyRequest(t *testing.T) {
	for name, rest := range map[string]func(*process) error{
		"to the end":        (*process).live,
		"for one more step": (*process).work,
	} {
		t.Run(name, func(t *testing.T) {
			banks(t, func(t *testing.T, forgetful bool) {
				enumerate(t, forgetful, true, func(t *testing.T, at int, after bool) bool {
					return standStill(t, forgetful, at, after, rest)
				})
			})
		})
	}
}

func standStill(t *testing.T, forgetful bool, at int, after bool, rest func(*process) error) (stood bool) {
	t.Helper()
	s := newStory(t, forgetful)
	stands, goOn := make(chan struct{}), make(chan struct{})
	wait := func() error {
		close(stands)
		<-goOn
		return nil
	}
	g := &wire.Gate{At: at, After: after, Happens: wait}
	first, ended := s.start(g), make(chan error, 1)
	go func() { ended <- first.live() }()
	select {
	case <-stands:
	case err := <-ended:
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	if err := rest(s.start(&wire.Gate{})); err != nil {
		t.Fatal(err)
	}
	s.check()
	close(goOn)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	s.check()
	return true
}

// TestServerAndBankSeeOneRoomWhileTwoReplicasWork lets two replicas work at the same time, as
// two that both believe to lead.
func TestServerAndBankSeeOneRoomWhileTwoReplicasWork(t *testing.T) {
	const rounds = 24
	banks(t, func(t *testing.T, forgetful bool) {
		ran := 0
		for round := 1; round <= rounds; round++ {
			if !slice.FromEnvironment(t).Has(round) {
				continue
			}
			ran++
			t.Run(fmt.Sprint(round), func(t *testing.T) {
				s := newStory(t, forgetful)
				over, both := make(chan struct{}), sync.WaitGroup{}
				for range 2 {
					p := s.start(&wire.Gate{})
					both.Go(func() {
						for {
							select {
							case <-over:
								return
							default:
								_, _ = p.loop.Reconcile(p.Context(), reconcile.Request{NamespacedName: p.key})
							}
						}
					})
				}
				for s.part < 3 {
					s.act()
					for deadline := time.Now().Add(2 * time.Minute); !s.converged(); time.Sleep(5 * time.Millisecond) {
						if time.Now().After(deadline) {
							t.Errorf("part %d comes to no end: %+v", s.part, s.get())
							break
						}
					}
					s.check()
				}
				close(over)
				both.Wait()
				s.check()
			})
		}
		t.Logf("%d rounds, %d of them run", rounds, ran)
	})
}

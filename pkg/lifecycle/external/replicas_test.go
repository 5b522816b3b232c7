// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/test/check"
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
			enumerate(t, true, func(t *testing.T, forgetful bool, at int, after bool) bool {
				return standStill(t, forgetful, at, after, rest)
			})
		})
	}
}

func standStill(t *testing.T, forgetful bool, at int, after bool, rest func(*process) error) (stood bool) {
	t.Helper()
	s := newStory(t, forgetful)
	stands, goOn, ended := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	resume := sync.OnceFunc(func() { close(goOn) })
	wait := func() error {
		close(stands)
		<-goOn
		return nil
	}
	g := &wire.Gate{At: at, After: after, Happens: wait}
	first := s.start(g)
	go func() {
		defer close(ended) // also if it fails the test
		ended <- first.live()
	}()
	defer func() { // also if the test fails, or it would wait for ever
		resume()
		<-ended
	}()
	select {
	case <-stands:
	case err := <-ended:
		check.NoError(t, err)
		return false
	}
	check.NoError(t, rest(s.start(&wire.Gate{})))
	s.check()
	resume()
	check.NoError(t, <-ended)
	s.check()
	return true
}

// TestServerAndBankSeeOneRoomWhileTwoReplicasWork lets two replicas work at the same time, as
// two that both believe to lead.
func TestServerAndBankSeeOneRoomWhileTwoReplicasWork(t *testing.T) {
	for round := range 12 {
		for _, forgetful := range []bool{false, true} {
			t.Run(fmt.Sprintf("round %d, the API knows no tokens: %t", round, forgetful), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { workTogether(t, forgetful) })
			})
		}
	}
}

func workTogether(t *testing.T, forgetful bool) {
	s := newStory(t, forgetful)
	over, both := make(chan struct{}), sync.WaitGroup{}
	for range 2 {
		p := s.start(&wire.Gate{Slow: true})
		both.Go(func() {
			for {
				select {
				case <-over:
					return
				case <-time.After(time.Millisecond): // both at the same time
					_, _ = p.loop.Reconcile(t.Context(), reconcile.Request{NamespacedName: vaultKey})
				}
			}
		})
	}
	stop := sync.OnceFunc(func() {
		close(over)
		both.Wait()
	})
	defer stop()
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
	stop()
	s.check()
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"errors"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/wire"
)

var errLost = errors.New("the answer is lost")

// story is the life of one vault: it is created, changed and deleted.
type story struct {
	*town
	// part is how far the user has come.
	part int
	// gone records that another client has deleted the vault.
	gone bool
}

func newStory(t *testing.T, forgetful bool) *story { return &story{town: newTown(t, forgetful)} }

// process is one replica of the operator. The test runs each of its reconciles.
type process struct {
	*story
	gate *wire.Gate
	loop *lifecycle.Reconciler[*vault]
}

func (s *story) start(g *wire.Gate) *process {
	s.Helper()
	options := external.Options{Timeout: 300 * time.Millisecond, GracePeriod: 100 * time.Millisecond, NotIdempotent: s.bank.forgetful}
	loop := s.operator(&teller{bank: s.bank, gate: g}, options, wire.Intercept(s.server, g.Do))
	return &process{story: s, gate: g, loop: loop}
}

// act does what the user does next.
func (s *story) act() {
	s.Helper()
	switch s.part {
	case 0:
		check.NoError(s, s.server.Create(s.Context(), newVault()))
	case 1:
		s.change(func(v *vault) { v.Spec.Size = 2 })
	default:
		s.delete()
	}
	s.part++
}

// converged reports whether what the user asked for is the case.
func (s *story) converged() bool {
	v := s.get()
	if s.part == 3 || s.gone {
		return v == nil
	}
	ready := conditions.Get(v, "Ready")
	return ready != nil && ready.Status == metav1.ConditionTrue && ready.ObservedGeneration == v.Generation && v.Status.Size == v.Spec.Size
}

// work reconciles until what the user asked for is the case, or the process has crashed.
func (p *process) work() error {
	p.Helper()
	for deadline := time.Now().Add(2 * time.Minute); !p.converged(); time.Sleep(10 * time.Millisecond) {
		if err := p.step(); err != nil {
			return err
		}
		if time.Now().After(deadline) {
			created, there, _ := p.bank.count()
			p.Fatalf("part %d comes to no end: %+v; %d rooms created, %d there", p.part, p.get(), created, there)
		}
	}
	return nil
}

// step runs one reconcile, and checks the conditions after it.
func (p *process) step() error {
	_, _ = p.loop.Reconcile(p.Context(), reconcile.Request{NamespacedName: vaultKey})
	if p.gate.HasCrashed() {
		return wire.ErrCrashed
	}
	// A first reconcile that met another client's write has ended without a word.
	if v := p.get(); v != nil && conditions.Has(v, "Ready") {
		conditionstest.Check(p, v)
	}
	return nil
}

// live goes on with the story to its end, or to the death of the process.
func (p *process) live() error {
	p.Helper()
	for {
		if p.part > 0 {
			if err := p.work(); err != nil {
				return err
			}
			p.check()
		}
		if p.part == 3 {
			return nil
		}
		p.act()
	}
}

// check expects one room in life, none after it, and never two.
func (s *story) check() {
	s.Helper()
	created, there, most := s.bank.count()
	over := s.part == 3 || s.gone
	switch {
	case over && there != 0:
		s.Errorf("%d rooms are leaked", there)
	case most > 1:
		s.Errorf("there were %d rooms at a time", most)
	case created > 1 || !over && created != 1:
		s.Errorf("%d rooms were created", created)
	}
	if !over && !slices.Equal(s.bank.sizes(), []int64{s.get().Spec.Size}) {
		s.Errorf("rooms of the sizes %v", s.bank.sizes())
	}
}

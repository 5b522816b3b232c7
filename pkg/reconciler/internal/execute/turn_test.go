// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAStepThatWaitsLetsOthersGoOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(1)
		waiting := &turn{pace: p}
		if err := waiting.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			if !pause(withTurn(t.Context(), waiting), time.Minute) || !waiting.held {
				t.Error("it does not go on")
			}
			waiting.end()
		})
		begun := time.Now()
		for range 5 {
			other := &turn{pace: p}
			if err := other.take(t.Context()); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			other.end()
		}
		if took := time.Since(begun); took != 5*time.Second {
			t.Errorf("the others took %s", took)
		}
		group.Wait()
		if p.active != 0 || len(p.queue) != 0 {
			t.Errorf("left are %d, waiting %d", p.active, len(p.queue))
		}
	})
}

func TestAStepThatWaitsInVainHasNoTurnToGiveBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(1)
		steps := []*turn{{pace: p}, {pace: p}}
		if err := steps[0].take(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if pause(withTurn(ctx, steps[0]), time.Hour) {
			t.Error("it goes on")
		}
		if err := steps[1].take(t.Context()); err != nil {
			t.Fatal(err)
		}
		steps[0].end()
		if p.active != 1 {
			t.Errorf("%d are under way", p.active)
		}
		steps[1].end()
	})
}

func TestWhatAStepWaitsForDoesNotSlowDownOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPace(1)
		p.bound = 4
		step := &turn{pace: p}
		if err := step.take(t.Context()); err != nil {
			t.Fatal(err)
		}
		if !pause(withTurn(t.Context(), step), time.Hour) {
			t.Fatal("it does not go on")
		}
		if step.end(); p.bound < 4 {
			t.Errorf("at most %g are under way now", p.bound)
		}
	})
}

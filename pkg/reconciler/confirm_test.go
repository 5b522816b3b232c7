// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// handClock is a clock that tests set.
type handClock struct{ at atomic.Int64 }

func (c *handClock) now() time.Time          { return time.Unix(0, c.at.Load()) }
func (c *handClock) advance(d time.Duration) { c.at.Add(int64(d)) }

// newConfirmed returns a bench with an engine that has a clock set by hand.
func newConfirmed(t *testing.T) (*bench, *handClock, *between) {
	b, clock := newBench(t), &handClock{}
	clock.advance(time.Hour)
	return b, clock, b.interpose(t, reconciler.ReconcilerOptions{Now: clock.now})
}

// mustRecord returns the inventory of a request before anything is created.
func (b *bench) mustRecord(request reconciler.ApplyRequest) v1alpha1.Inventory {
	b.t.Helper()
	request.Record = nil
	outcome, err := b.engine.Apply(b.t.Context(), request)
	if err != nil || !outcome.Unrecorded {
		b.t.Fatalf("record: %v, %+v", err, outcome)
	}
	return outcome.Inventory
}

func TestCreationsAreConfirmedUnlessTheyWereJustRecorded(t *testing.T) {
	for _, tt := range []struct {
		name     string
		recorded bool // the keys are on record already
		want     int
	}{{"recorded before this call", true, 1}, {"recorded in this call", false, 0}} {
		t.Run(tt.name, func(t *testing.T) {
			b, _, _ := newConfirmed(t)
			request := b.request(config("a", "1"), config("b", "1"), config("c", "1"))
			if tt.recorded {
				request.Inventory = b.mustRecord(request)
			}
			confirmed := 0
			request.Confirm = func(context.Context) error { confirmed++; return nil }
			outcome, err := b.engine.Apply(t.Context(), request)
			if err != nil || !outcome.Done() || b.get("c") == nil {
				t.Fatalf("apply: %v, waiting for %v", err, outcome.Waiting)
			}
			if confirmed != tt.want {
				t.Errorf("confirmed %d times, want %d", confirmed, tt.want)
			}
		})
	}
}

// A batch may take long; a creation in one of its later stages is as dangerous as the first.
func TestCreationsAreConfirmedInTheMiddleOfABatch(t *testing.T) {
	b, clock, between := newConfirmed(t)
	service := config("web", "1")
	service.Object["kind"], service.Object["spec"] = "Service", map[string]any{"ports": []any{map[string]any{"port": int64(80)}}}
	delete(service.Object, "data")
	taken := errors.New("another process leads")
	request := b.request(config("a", "1"), service)
	request.Confirm = func(context.Context) error { return taken }
	slow := between.before("POST /api/v1/namespaces/"+b.namespace+"/configmaps", func() { clock.advance(6 * time.Second) })
	_, err := b.engine.Apply(t.Context(), request)
	if _, superseded := errors.AsType[*reconciler.SupersededError](err); !superseded || !slow() {
		t.Fatalf("got %v, want a SupersededError", err)
	}
	if b.get("a") == nil || len(between.requests("POST /api/v1/namespaces/"+b.namespace+"/services")) > 0 {
		t.Error("the object of the later stage was created, or the first was not")
	}
}

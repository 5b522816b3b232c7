// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/lifecycle/external"
	"github.com/corbel-run/corbel/pkg/result"
	"github.com/corbel-run/corbel/test/check"
)

// clumsy is a Client with some methods that do something else.
type clumsy struct {
	*teller
	create func(ctx context.Context, v *vault) (external.Operation, error)
	remove func(ctx context.Context, v *vault) (external.Operation, error)
	look   func(ctx context.Context, v *vault) (external.Observation, error)
	rests  bool
}

func (c *clumsy) Create(ctx context.Context, v *vault) (external.Operation, error) {
	if c.create != nil {
		return c.create(ctx, v)
	}
	return c.teller.Create(ctx, v)
}

func (c *clumsy) Delete(ctx context.Context, v *vault) (external.Operation, error) {
	if c.remove != nil {
		return c.remove(ctx, v)
	}
	return c.teller.Delete(ctx, v)
}

func (c *clumsy) Observe(ctx context.Context, v *vault) (external.Observation, error) {
	if c.look != nil {
		return c.look(ctx, v)
	}
	return c.teller.Observe(ctx, v)
}

func (c *clumsy) Suspended(*vault) bool { return c.rests }
func (c *clumsy) Claim(_ context.Context, v *vault) error {
	v.Labels = map[string]string{"claimed": "yes"}
	return nil
}

func newClumsy(t *testing.T, options external.Options) (*branch, *clumsy) {
	t.Helper()
	c := &clumsy{}
	return newBranch(t, options, func(teller *teller) external.Client[*vault] { c.teller = teller; return c }), c
}

func TestAfterARefusedCreateNothingIsWaitedFor(t *testing.T) {
	b := newBranch(t, external.Options{}, nil)
	b.change(func(v *vault) { v.Spec.Size = -1 })
	v, _, err := b.reconcile()
	b.want(v, "Error", "", 0, 0)
	check.Fails(t, err, "a room cannot be smaller than nothing")
	b.delete()
	if v, _, err := b.reconcile(); v != nil || err != nil {
		t.Errorf("it is not gone: %+v, %v", v, err)
	}
}

func TestARefusalWithoutAnAnswerDoesNotPanic(t *testing.T) {
	for _, err := range []error{external.Refused(nil), (*external.RefusedError)(nil)} {
		check.Same(t, "refused", err.Error())
		check.Same(t, nil, errors.Unwrap(err))
	}
}

func TestARefusalAfterALostAnswerKeepsTheToken(t *testing.T) {
	b, c := newClumsy(t, external.Options{})
	c.create = func(context.Context, *vault) (external.Operation, error) { return external.Operation{}, errLost }
	v, _, _ := b.reconcile()
	token := v.Status.External.Token
	c.create = func(context.Context, *vault) (external.Operation, error) {
		return external.Operation{}, result.NewError(external.Refused(errors.New("busy")), result.SeverityError, "Busy")
	}
	v, _, _ = b.reconcile()
	b.want(v, "Busy", external.PhaseCreating, 0, 0)
	if v.Status.External.Token != token || !conditions.IsStalled(v) {
		t.Errorf("status %+v", v.Status)
	}
	b.now = b.now.Add(time.Minute) // now the first attempt cannot take effect any more
	v, _, _ = b.reconcile()
	b.want(v, "Busy", "", 0, 0)
}

func TestADeletionWaitsForACreateThatMayStillTakeEffect(t *testing.T) {
	b, c := newClumsy(t, external.Options{})
	c.create = func(context.Context, *vault) (external.Operation, error) { return external.Operation{}, errLost }
	_, _, _ = b.reconcile()
	b.delete()
	b.now = b.now.Add(10 * time.Second)
	v, after, err := b.reconcile()
	b.want(v, "DeletionProcessing", external.PhaseCreating, 0, 0)
	if err != nil || after != 30*time.Second+time.Millisecond || !strings.Contains(conditions.Get(v, "Ready").Message, "the Create of 2026-05-06T07:08:09Z may still take effect") {
		t.Errorf("comes after %s, %v: %+v", after, err, v.Status.Conditions)
	}
	b.bank.build(v.Status.External.Token, 1) // it does
	v, _, _ = b.reconcile()
	b.want(v, "DeletionProcessing", external.PhaseCreated, 1, 0)
	b.now = b.now.Add(30 * time.Second)
	if v, _, err := b.reconcile(); v != nil || err != nil {
		t.Errorf("it is not gone: %+v, %v", v, err)
	}
}

func TestWorkInTheBackgroundIsWaitedFor(t *testing.T) {
	b, c := newClumsy(t, external.Options{})
	done := external.Operation{InProgress: true, Message: "3 walls are missing", After: 7 * time.Second}
	c.create = func(_ context.Context, v *vault) (external.Operation, error) {
		done.Name = b.bank.build(v.Status.External.Token, 1)
		return done, nil
	}
	v, after, err := b.reconcile()
	b.want(v, "Processing", external.PhaseCreated, 1, 1)
	if err != nil || after != 7*time.Second || conditions.Get(v, "Ready").Message != "3 walls are missing" || !conditions.IsReconciling(v) {
		t.Errorf("comes after %s, %v: %+v", after, err, v.Status.Conditions)
	}
	c.look = func(context.Context, *vault) (external.Observation, error) {
		return external.Observation{Exists: true, InProgress: true, Message: "1 wall is missing"}, nil
	}
	v, after, _ = b.reconcile()
	if after != time.Second || conditions.Get(v, "Ready").Message != "1 wall is missing" {
		t.Errorf("comes after %s: %+v", after, v.Status.Conditions)
	}
	c.look = nil
	v, _, _ = b.reconcile()
	b.want(v, "Ready", external.PhaseCreated, 1, 1)
	c.remove = func(context.Context, *vault) (external.Operation, error) {
		return external.Operation{InProgress: true}, nil
	}
	b.delete()
	v, after, err = b.reconcile()
	b.want(v, "DeletionProcessing", external.PhaseCreated, 1, 1)
	if err != nil || after != time.Second {
		t.Errorf("comes after %s, %v", after, err)
	}
}

func TestAnAPIThatShowsLateWhatItCreatedIsNotAskedTwice(t *testing.T) {
	b, c := newClumsy(t, external.Options{EventuallyConsistent: true})
	blind := func(context.Context, *vault) (external.Observation, error) { return external.Observation{}, nil }
	c.look = blind
	for range 2 {
		v, _, err := b.reconcile()
		b.want(v, "Processing", external.PhaseCreated, 1, 1)
		if err != nil {
			t.Error(err)
		}
		b.now = b.now.Add(20 * time.Second)
	}
	c.look = nil
	v, _, _ := b.reconcile()
	b.want(v, "Ready", external.PhaseCreated, 1, 1)
	if v.Status.External.Since != nil {
		t.Errorf("record %+v", v.Status.External)
	}
}

func TestAnObservationThatFailsStopsTheReconcile(t *testing.T) {
	b, c := newClumsy(t, external.Options{})
	v, _, _ := b.reconcile()
	b.want(v, "Ready", external.PhaseCreated, 1, 1)
	c.look = func(context.Context, *vault) (external.Observation, error) { return external.Observation{}, errLost }
	v, _, err := b.reconcile()
	b.want(v, "Error", external.PhaseCreated, 1, 1)
	if !errors.Is(err, errLost) {
		t.Errorf("error %v", err)
	}
	b.delete()
	if v, _, err := b.reconcile(); v == nil || !errors.Is(err, errLost) {
		t.Errorf("the vault went although the room is on no record: %v", err)
	}
}

func TestACallThatHangsEndsWithTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b, c := newClumsy(t, external.Options{Timeout: 300 * time.Millisecond})
		hangs := func(ctx context.Context, _ *vault) (external.Operation, error) {
			<-ctx.Done()
			return external.Operation{}, ctx.Err()
		}
		expect := func(call string) {
			t.Helper()
			if _, _, err := b.reconcile(); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %v", call, err)
			}
		}
		c.create = hangs
		expect("Create")
		c.create = nil
		v, _, _ := b.reconcile()
		b.want(v, "Ready", external.PhaseCreated, 1, 1)
		c.look = func(ctx context.Context, v *vault) (external.Observation, error) {
			_, err := hangs(ctx, v)
			return external.Observation{}, err
		}
		expect("Observe")
		c.look, c.remove = nil, hangs
		b.delete()
		expect("Delete")
	})
}

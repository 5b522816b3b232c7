// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package external_test

import (
	"testing"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/pkg/lifecycle/external"
)

// suspend returns the time after the machine has slept: the wall clock went on, the
// monotonic clock did not. Package time has no way to say that, so the seconds are
// added in the field that holds them beside a monotonic reading.
func suspend(t *testing.T, now time.Time, seconds uint64) time.Time {
	t.Helper()
	const nanosecondBits = 30
	later := now
	wall := (*uint64)(unsafe.Pointer(&later))
	*wall += seconds << nanosecondBits
	slept := time.Duration(seconds) * time.Second
	if later.Sub(now) != 0 || later.Round(0).Sub(now.Round(0)) != slept {
		t.Fatalf("this is no clock after a suspension: %s, then %s", now, later)
	}
	return later
}

func TestACreateIsNotSentIfItsRecordTookTooLong(t *testing.T) {
	for name, later := range map[string]func(time.Time) time.Time{
		"the machine stands still after each look at the clock": func(now time.Time) time.Time { return now.Add(time.Minute) },
		"the machine sleeps": func(now time.Time) time.Time { return suspend(t, now, 60) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBranch(t, external.Options{}, nil)
			b.now = time.Now() // with a monotonic reading
			b.tick = func() { b.now = later(b.now) }
			v, _, err := b.reconcile()
			b.want(v, "Processing", external.PhaseCreating, 0, 0)
			if err != nil {
				t.Error(err)
			}
			b.tick = nil
			v, _, _ = b.reconcile()
			b.want(v, "Ready", external.PhaseCreated, 1, 1)
		})
	}
}

func TestATimeThatCannotBeIsReplacedByThePresent(t *testing.T) {
	// started returns a branch with a room that is gone, and a Create that started so far ahead.
	started := func(t *testing.T, options external.Options, ahead time.Duration) (*branch, *vault) {
		b := newBranch(t, options, nil)
		_, _, _ = b.reconcile()
		b.bank.remove("room-1")
		return b, b.changeStatus(func(v *vault) {
			v.Status.External = external.Record{Token: "t-1", Phase: external.PhaseCreating, Since: &metav1.MicroTime{Time: b.now.Add(ahead)}}
		})
	}
	t.Run("in deletion", func(t *testing.T) {
		b, _ := started(t, external.Options{}, 1000*time.Hour)
		b.delete()
		v, after, err := b.reconcile()
		b.want(v, "DeletionProcessing", external.PhaseCreating, 1, 0)
		if err != nil || after != 40*time.Second+time.Millisecond || !v.Status.External.Since.Time.Equal(b.now) {
			t.Errorf("comes after %s, %v: %+v", after, err, v.Status.External)
		}
		b.now = b.now.Add(after)
		if v, _, err := b.reconcile(); v != nil || err != nil {
			t.Errorf("it is not gone: %+v, %v", v, err)
		}
	})
	t.Run("in life", func(t *testing.T) {
		b, _ := started(t, external.Options{NotIdempotent: true}, 1000*time.Hour)
		v, after, _ := b.reconcile()
		b.want(v, "Processing", external.PhaseCreating, 1, 0)
		b.now = b.now.Add(after)
		v, _, _ = b.reconcile()
		b.want(v, "Ready", external.PhaseCreated, 2, 1)
	})
	t.Run("as far as two clocks may differ it stays", func(t *testing.T) {
		b, before := started(t, external.Options{NotIdempotent: true}, 10*time.Second)
		v, _, _ := b.reconcile()
		if want := before.Status.External.Since; !v.Status.External.Since.Equal(want) {
			t.Errorf("since %s, want %s", v.Status.External.Since, want)
		}
	})
}

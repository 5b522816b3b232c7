// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package operator

import (
	"context"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

const (
	// quiet is how long nothing must have been sent until it counts as nothing to do.
	quiet = 300 * time.Millisecond
	// looking is how often we look.
	looking = 20 * time.Millisecond
)

// idle waits until so many reconciles have ended, no worker is active, and nothing is sent for a while.
// It returns when the last was done. While requests show that there is work, the metrics
// are not read: that costs processor time, which is measured.
func (w *Worker) idle(ctx context.Context, reconciles int) (time.Time, error) {
	ticker := time.NewTicker(looking)
	defer ticker.Stop()
	done, busy := time.Now(), reconciles > 0
	for {
		now := time.Now()
		answered, still := w.counter.Quiet()
		if !still {
			done = now
		} else if answered.After(done) {
			done = answered
		}
		if busy || now.Sub(done) >= quiet {
			work, err := workOfManager()
			if err != nil {
				return done, err
			}
			if busy = work.pending > 0 || work.ended < reconciles; busy {
				done = now
			} else if now.Sub(done) >= quiet {
				return done, nil
			}
		}
		select {
		case <-ctx.Done():
			return done, ctx.Err()
		case err := <-w.ended:
			return done, fmt.Errorf("the manager ended: %w", err)
		case <-ticker.C:
		}
	}
}

type work struct{ pending, ended int }

// workOfManager reads what controller-runtime publishes of its work.
func workOfManager() (work, error) {
	families, err := metrics.Registry.Gather()
	if err != nil {
		return work{}, fmt.Errorf("read the metrics of the manager: %w", err)
	}
	var w work
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			switch family.GetName() {
			case "controller_runtime_active_workers", "workqueue_depth":
				w.pending += int(metric.GetGauge().GetValue())
			case "controller_runtime_reconcile_total":
				w.ended += int(metric.GetCounter().GetValue())
			}
		}
	}
	return w, nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package soak

import (
	"context"
	"fmt"
	"syscall"
	"time"

	"github.com/corbel-run/corbel/test/bench/measure"
)

// chaosPause is the time between two of what happens to processes: between this and
// three times as much.
const chaosPause = 2 * time.Second

// chaos kills and stops processes until the context ends. It is alone in doing so.
func (s *soak) chaos(ctx context.Context) error {
	for {
		if !sleep(ctx, chaosPause+time.Duration(s.fate.Float64()*float64(2*chaosPause))) {
			return nil
		}
		what, err := s.strike(ctx)
		if err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
		s.strikes[what]++
	}
}

// strike does one thing to one process, and undoes it.
func (s *soak) strike(ctx context.Context) (what string, err error) {
	n, i, part := s.fate.IntN(100), s.fate.IntN(2), s.fate.Float64()
	target := s.process
	if s.operators != nil {
		target = s.operators.pick(i)
	}
	switch {
	case n < 30 && s.operators != nil && target != nil:
		s.operators.kill(target)
		return "operator killed", nil
	case n < 60 && target != nil:
		// Longer than the lease of a leader, at times.
		return "operator stopped", stopFor(ctx, target, time.Duration(part*float64(10*time.Second)))
	case n < 70:
		return "etcd stopped", s.freeze(ctx, "etcd", time.Duration(part*float64(3*time.Second)))
	case n < 80:
		return "API server stopped", s.freeze(ctx, "kube-apiserver", time.Duration(part*float64(5*time.Second)))
	case n < 90:
		return "etcd killed", s.env.RestartEtcd(context.WithoutCancel(ctx))
	default:
		return "API server killed", s.restartAPIServer(context.WithoutCancel(ctx))
	}
}

// stopFor stops a process for some time.
func stopFor(ctx context.Context, p *measure.Process, duration time.Duration) error {
	if p.Signal(syscall.SIGSTOP) != nil {
		return nil // it has ended
	}
	sleep(ctx, duration)
	_ = p.Signal(syscall.SIGCONT) // it was killed if this fails
	return nil
}

func (s *soak) freeze(ctx context.Context, program string, duration time.Duration) error {
	thaw, err := s.env.Freeze(program)
	if err != nil {
		return err
	}
	sleep(ctx, duration)
	return thaw()
}

// sleep reports whether the time passed before the context ended.
func sleep(ctx context.Context, duration time.Duration) bool {
	timer := time.NewTimer(duration)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

import "time"

// Process is a process of its own for tests, which have only one.
type Process = process

// NewProcess returns another process.
func NewProcess() *Process { return newProcess() }

// WithProcess makes a Lock believe that it is in that process.
func WithProcess(p *Process) LockOption { return func(l *Lock) { l.process = p } }

// WithPatience sets how long a Lock tries to release.
func WithPatience(d time.Duration) LockOption { return func(l *Lock) { l.releaseTimeout = d } }

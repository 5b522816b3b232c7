// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package steps

// Process is a process of its own for tests, which have only one.
type Process = process

// NewProcess returns another process.
func NewProcess() *Process { return newProcess() }

// WithProcess makes a Lock believe that it is in that process.
func WithProcess(p *Process) LockOption { return func(l *Lock) { l.process = p } }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
)

// RestartEtcd kills etcd, as a crash would, starts it on its data, and waits until the
// API server is ready. It must not be called at the same time as another method that
// stops or starts a program.
func (e *Environment) RestartEtcd(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.StartTimeout)
	defer cancel()
	if !e.etcd.running() {
		return e.etcd.died()
	}
	e.etcd.kill()
	if err := e.startEtcd(ctx); err != nil {
		return err
	}
	return e.await(ctx, "the API server to be ready", e.apiserverReady)
}

// Freeze stops a program, "etcd" or "kube-apiserver", as a machine without time for it
// would. It goes on when thaw is called, which must be before Stop.
func (e *Environment) Freeze(name string) (thaw func() error, err error) {
	for _, p := range []*process{e.etcd, e.apiserver} {
		if p == nil || p.name != name {
			continue
		}
		if err := pause(p.command.Process); err != nil {
			return nil, fmt.Errorf("stop %s: %w", name, err)
		}
		return func() error { return resume(p.command.Process) }, nil
	}
	return nil, fmt.Errorf("%s does not run", name)
}

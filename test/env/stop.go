// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"
)

// grace is how long a program may take to end by itself. It is short, because all
// state is about to be deleted: what a kill cuts off is the API server's last
// second, after it has stopped to serve.
const grace = 500 * time.Millisecond

func (e *Environment) stopOnce() error {
	err := e.deaths()
	// The API server last but one: the others would fill their logs with complaints.
	stopAll(e.components...)
	stopAll(append([]*process{e.apiserver}, e.moreServers()...)...)
	stopAll(append([]*process{e.etcd}, e.moreEtcds()...)...)
	if e.network != nil {
		e.network.close()
	}
	if e.guard != nil {
		err = errors.Join(err, e.guard.end())
	}
	if e.http != nil {
		e.http.CloseIdleConnections()
	}
	if e.dir == "" {
		return err
	}
	if e.keepLogs.Load() || err != nil {
		e.options.Logf("the logs of the control plane are kept in %s", e.logs)
		return errors.Join(err, os.RemoveAll(e.run))
	}
	return os.RemoveAll(e.dir)
}

// deaths reports the programs that ended without being stopped.
func (e *Environment) deaths() error {
	var errs []error
	for _, p := range e.processes() {
		if !p.running() {
			errs = append(errs, p.died())
		}
	}
	return errors.Join(errs...)
}

// processes returns those that should be running.
func (e *Environment) processes() []*process {
	var all []*process
	for _, p := range slices.Concat([]*process{e.etcd, e.apiserver}, e.moreEtcds(), e.moreServers(), e.components) {
		if p != nil {
			all = append(all, p)
		}
	}
	return all
}

func stopAll(processes ...*process) {
	var wait sync.WaitGroup
	for _, p := range processes {
		if p != nil {
			wait.Go(func() { p.stop(grace) })
		}
	}
	wait.Wait()
}

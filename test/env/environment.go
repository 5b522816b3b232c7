// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// Environment is a running control plane. Its methods may be called from several
// goroutines, but Stop, KillAPIServer and RestartAPIServer not at the same time.
type Environment struct {
	options Options
	dir     string // all that we write
	run     string // in dir: state and keys; of no use after the end
	logs    string // in dir: kept when something fails

	guard     *guard
	authority *authority
	config    *rest.Config // the administrator's
	http      *http.Client // with that configuration
	port      int

	network *network  // with more than one server
	more    []*member // the others but the first
	// etcdArgs are the arguments of the members of etcd, with more than one server.
	etcdArgs [][]string

	etcd       *process
	apiserver  *process // nil while it is killed
	components []*process

	audit auditReader

	keepLogs atomic.Bool
	stop     sync.Once
	stopErr  error
}

// Start starts an environment and returns when it is ready for use: the API server
// answers and namespace default exists; with [Options.Cluster], the nodes are
// Ready and pods can be created, too. The context bounds only the start.
//
// When it fails, nothing is left running, and the error holds the end of the log of
// the program that failed and says where the rest is.
func Start(ctx context.Context, options Options) (*Environment, error) {
	options, err := options.withDefaults()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, options.StartTimeout)
	defer cancel()

	e := &Environment{options: options}
	if err := e.startAll(ctx); err != nil {
		e.KeepLogs()
		return nil, errors.Join(fmt.Errorf("start the control plane: %w", err), e.Stop())
	}
	return e, nil
}

func (e *Environment) startAll(ctx context.Context) error {
	for _, step := range []func(context.Context) error{
		e.prepare, e.startEtcd, e.startAPIServer, e.startMoreServers, e.startComponents, e.awaitReady,
	} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// prepare makes the folders, the guard and the certificates.
func (e *Environment) prepare(context.Context) error {
	dir, err := os.MkdirTemp("", "corbel-env-")
	if err != nil {
		return fmt.Errorf("make a temporary folder: %w", err)
	}
	e.dir, e.run, e.logs = dir, filepath.Join(dir, "run"), filepath.Join(dir, "logs")
	for _, folder := range []string{e.run, e.logs} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			return err
		}
	}
	if e.guard, err = newGuard(e.run); err != nil {
		return err
	}
	return e.writeIdentities()
}

// Stop ends all processes and removes the temporary folder. It reports programs
// that had ended before, by themselves. Calling it again does nothing.
func (e *Environment) Stop() error {
	e.stop.Do(func() { e.stopErr = e.stopOnce() })
	return e.stopErr
}

// KeepLogs makes Stop leave the logs behind and say where they are.
func (e *Environment) KeepLogs() { e.keepLogs.Store(true) }

// Config returns the configuration of an administrator's client that is not
// throttled on the client side. It is the caller's own copy.
func (e *Environment) Config() *rest.Config { return rest.CopyConfig(e.config) }

// Kubeconfig returns the path of a kubeconfig for the same administrator.
func (e *Environment) Kubeconfig() string { return filepath.Join(e.run, "kubeconfig") }

// Dir returns the environment's temporary folder, which Stop removes.
func (e *Environment) Dir() string { return e.dir }

// LogDir returns the folder with one log per program.
func (e *Environment) LogDir() string { return e.logs }

// Program returns the path of a program of the control plane, such as kubectl.
func (e *Environment) Program(name string) string { return filepath.Join(e.options.Assets, name) }

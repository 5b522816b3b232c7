// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strconv"
	"time"
)

// portAttempts is how many free ports are tried. Between finding one and using it
// another process may get it; five times in a row means that something else is wrong.
const portAttempts = 5

// startAPIServer starts kube-apiserver on a free port and waits until it is ready.
func (e *Environment) startAPIServer(ctx context.Context) error {
	if e.options.AuditLog {
		if err := os.WriteFile(e.file("audit-policy.yaml"), []byte(auditPolicy(e.options.AuditBodies)), 0o600); err != nil {
			return err
		}
	}
	var err error
	for range portAttempts {
		if e.port, err = freePort(); err != nil {
			return err
		}
		if err = e.writeKubeconfigs(); err != nil {
			return err
		}
		if err = e.runAPIServer(ctx); err == nil || !e.apiserver.lostPort() {
			return err
		}
	}
	return err
}

// runAPIServer starts kube-apiserver on the port we have, and waits until it is ready.
func (e *Environment) runAPIServer(ctx context.Context) error {
	p, err := e.start("kube-apiserver", e.apiserverArgs(1, e.port)...)
	if err != nil {
		return err
	}
	e.apiserver = p
	return e.await(ctx, "the API server to be ready", e.apiserverReady)
}

// apiserverArgs are the arguments of the API server of that number.
func (e *Environment) apiserverArgs(n, port int) []string {
	args := []string{
		"--etcd-servers=" + e.etcdURL(n),
		"--bind-address=127.0.0.1",
		"--secure-port=" + strconv.Itoa(port),
		// Otherwise it looks for a default route, and a machine may have none.
		// A loopback address cannot be an endpoint of service kubernetes, so no
		// endpoint is kept; no pod will miss it.
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none",
		"--tls-cert-file=" + e.file("apiserver.crt"),
		"--tls-private-key-file=" + e.file("apiserver.key"),
		"--client-ca-file=" + e.file("ca.crt"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file=" + e.file("service-accounts.key"),
		"--service-account-signing-key-file=" + e.file("service-accounts.key"),
		"--service-cluster-ip-range=10.96.0.0/16",
		"--authorization-mode=RBAC",
		"--allow-privileged=true",
		"--profiling=false",
	}
	if !e.options.Cluster {
		// It demands a service account in every pod, which only a controller makes.
		args = append(args, "--disable-admission-plugins=ServiceAccount")
	}
	if e.options.AuditLog {
		args = append(args,
			"--audit-policy-file="+e.file("audit-policy.yaml"),
			"--audit-log-path="+e.auditLog(),
			// An answer is not sent before its line is written; so a reader misses none.
			"--audit-log-mode=blocking",
			// In megabytes. A log that is moved away cannot be read on.
			"--audit-log-maxsize=100000",
		)
	}
	return append(args, e.options.APIServerArgs...)
}

// KillAPIServer ends the API server at once, as a crash would. Its state remains.
func (e *Environment) KillAPIServer() error {
	if e.apiserver == nil {
		return errors.New("the API server was killed before")
	}
	if !e.apiserver.running() {
		return e.apiserver.died()
	}
	e.apiserver.kill()
	e.apiserver = nil
	return nil
}

// RestartAPIServer kills the API server if it runs, starts it on the same port,
// and waits until it is ready.
func (e *Environment) RestartAPIServer(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, e.options.StartTimeout)
	defer cancel()
	if e.apiserver != nil {
		e.apiserver.kill()
		e.apiserver = nil
	}
	for {
		err := e.runAPIServer(ctx)
		if err == nil || !e.apiserver.lostPort() {
			return err
		}
		// An outgoing connection of another process uses our port, and will end.
		select {
		case <-ctx.Done():
			return fmt.Errorf("restart the API server on port %d: %w", e.port, errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

func freePort() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a free port: %w", err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	return port, listener.Close()
}

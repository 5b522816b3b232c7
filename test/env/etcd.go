// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"fmt"
)

// maxSocketPath is what fits into the address of a socket on every Unix.
const maxSocketPath = 103

// startEtcd starts etcd on a socket in our folder: it needs no port, and
// no other user of the machine can read the cluster's secrets past the API server.
// It returns at once; the API server waits for etcd.
func (e *Environment) startEtcd(context.Context) error {
	if socket := e.file("etcd.sock"); len(socket) > maxSocketPath {
		return fmt.Errorf("the path of a socket would be too long (%s): set TMPDIR to a shorter folder", socket)
	}
	var err error
	e.etcd, err = e.start("etcd",
		"--name=env",
		"--data-dir="+e.file("etcd"),
		"--listen-client-urls="+e.etcdURL(),
		// No client uses these, but they must look like addresses of hosts.
		"--advertise-client-urls=http://127.0.0.1:0",
		"--listen-peer-urls=http://127.0.0.1:0",
		"--initial-advertise-peer-urls=http://127.0.0.1:0",
		"--initial-cluster=env=http://127.0.0.1:0",
		// The data may be lost; nothing may wait for a disk.
		"--unsafe-no-fsync=true",
		// A single member need not wait a second for others before it leads.
		"--heartbeat-interval=10",
		"--election-timeout=100",
		"--quota-backend-bytes=8589934592",
		"--log-level=warn",
	)
	return err
}

func (e *Environment) etcdURL() string { return "unix://" + e.file("etcd.sock") }

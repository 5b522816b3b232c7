// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
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

// Store writes an object into etcd as it is, in JSON, under a key such as
// "configmaps/default/a". The object keeps its uid, its timestamps and its managed
// fields, which no request to the API server can set.
func (e *Environment) Store(ctx context.Context, key string, object any) error {
	value, err := json.Marshal(object)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	// JSON has bytes in base64.
	put, err := json.Marshal(map[string][]byte{"key": []byte("/registry/" + key), "value": value})
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", e.file("etcd.sock"))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd/v3/kv/put", bytes.NewReader(put))
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	defer response.Body.Close()
	if answer, err := io.ReadAll(response.Body); err != nil || response.StatusCode != http.StatusOK {
		return fmt.Errorf("store %s: etcd answers %s: %s (%v)", key, response.Status, answer, err)
	}
	return nil
}

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
	if e.options.Servers > 1 {
		return e.startMembers()
	}
	var err error
	e.etcd, err = e.start("etcd",
		"--name=env",
		"--data-dir="+e.file("etcd"),
		"--listen-client-urls="+e.etcdURL(1),
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

// etcdURL is where the API server of that number reaches etcd.
func (e *Environment) etcdURL(n int) string {
	if e.options.Servers > 1 {
		return "unix://" + e.file(linkSocket(n))
	}
	return "unix://" + e.file(etcdSocket(n))
}

// etcdSocket is the file of the socket of the member of that number.
func etcdSocket(n int) string {
	if n == 1 {
		return "etcd.sock"
	}
	return fmt.Sprintf("etcd-%d.sock", n)
}

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
	if _, err := e.askEtcd(ctx, 1, "/v3/kv/put", put); err != nil {
		return fmt.Errorf("store %s: %w", key, err)
	}
	return nil
}

// askEtcd sends a request in JSON to the member of that number, and returns the answer.
func (e *Environment) askEtcd(ctx context.Context, n int, path string, body []byte) ([]byte, error) {
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", e.file(etcdSocket(n)))
	}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://etcd"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("etcd answers %s: %s", response.Status, answer)
	}
	return answer, err
}

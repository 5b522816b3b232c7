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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/changes"
)

// message is what the endpoint gets. It may get the same one again, and knows by the
// uid which object it is about.
type message struct {
	Action    changes.ReconcileAction `json:"action"`
	Namespace string                  `json:"namespace"`
	Name      string                  `json:"name"`
	UID       types.UID               `json:"uid"`
	Old       map[string]string       `json:"old,omitempty"`
	Data      map[string]string       `json:"data,omitempty"`
}

// notifier posts messages.
type notifier struct {
	endpoint string
	client   *http.Client
}

// notify posts to the endpoint what happened. If the endpoint says when to retry, it is
// asked then; other failures are retried with growing delays.
func (n *notifier) notify(ctx context.Context, req changes.TypedReconcileRequest[*corev1.ConfigMap]) (changes.ReconcileResult, error) {
	m := message{Action: req.Action, Namespace: req.Object.Namespace, Name: req.Object.Name, UID: req.Object.UID}
	if req.Action != changes.ReconcileActionDeleted {
		m.Data = req.Object.Data
	}
	if req.Old != nil {
		m.Old = req.Old.Data
	}
	body, err := json.Marshal(m)
	if err != nil {
		return changes.ReconcileResult{}, err
	}
	post, err := http.NewRequestWithContext(ctx, http.MethodPost, n.endpoint, bytes.NewReader(body))
	if err != nil {
		return changes.ReconcileResult{}, err
	}
	post.Header.Set("Content-Type", "application/json")
	response, err := n.client.Do(post)
	if err != nil {
		return changes.ReconcileResult{}, err
	}
	defer func() { _ = response.Body.Close() }()
	_, _ = io.Copy(io.Discard, io.LimitReader(response.Body, 1<<16)) // so that the connection is used again
	if response.StatusCode < 300 {
		return changes.ReconcileResult{}, nil
	}
	if seconds, err := strconv.Atoi(response.Header.Get("Retry-After")); err == nil && seconds > 0 {
		return changes.ReconcileResult{RequeueAfter: time.Duration(seconds) * time.Second}, nil
	}
	return changes.ReconcileResult{}, fmt.Errorf("post to %s: %s", n.endpoint, response.Status)
}

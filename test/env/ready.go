// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// await looks every few milliseconds whether something is true, until it is, the
// context ends, or a program has died, in which case waiting is pointless. The
// check returns why it is not true yet.
func (e *Environment) await(ctx context.Context, what string, check func(context.Context) error) error {
	ctx, cancel := e.whileAllRun(ctx)
	defer cancel()
	ticker := time.NewTicker(20 * time.Millisecond)
	defer ticker.Stop()
	for {
		err := check(ctx)
		if err == nil {
			return nil
		}
		if dead := e.deaths(); dead != nil {
			return dead
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited in vain for %s: %w", what, errors.Join(e.deaths(), ctx.Err(), err))
		case <-ticker.C:
		}
	}
}

// whileAllRun returns a context that ends also when a program does. A check that
// hangs, because another process listens on our port, must not hide that our program
// could not.
func (e *Environment) whileAllRun(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	for _, p := range e.processes() {
		go func() {
			select {
			case <-p.exited:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return ctx, cancel
}

// apiserverReady asks the API server itself.
func (e *Environment) apiserverReady(ctx context.Context) error { return e.get(ctx, "/readyz", nil) }

// awaitReady waits for what the server and the controllers make by themselves, and
// without which a first request of a test could fail.
func (e *Environment) awaitReady(ctx context.Context) error {
	err := e.await(ctx, "namespace default", func(ctx context.Context) error {
		return e.get(ctx, "/api/v1/namespaces/default", nil)
	})
	if err != nil || !e.options.Cluster {
		return err
	}
	return e.await(ctx, "the cluster to be ready", func(ctx context.Context) error {
		return errors.Join(e.nodesReady(ctx), e.get(ctx, "/api/v1/namespaces/default/serviceaccounts/default", nil))
	})
}

func (e *Environment) nodesReady(ctx context.Context) error {
	var nodes corev1.NodeList
	if err := e.get(ctx, "/api/v1/nodes", &nodes); err != nil {
		return err
	}
	ready := 0
	for _, node := range nodes.Items {
		if len(node.Spec.Taints) == 0 && nodeReady(&node) {
			ready++
		}
	}
	if ready < e.options.Nodes {
		return fmt.Errorf("%d of %d nodes are ready", ready, e.options.Nodes)
	}
	return nil
}

func nodeReady(node *corev1.Node) bool {
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

// get asks the API server for an address, as the administrator, and reads the
// answer into an object if one is given. Any answer but 200 is an error.
func (e *Environment) get(ctx context.Context, path string, into any) error {
	return e.getFrom(ctx, e.port, path, into)
}

// getFrom is get, from the API server at a port.
func (e *Environment) getFrom(ctx context.Context, port int, path string, into any) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, host(port)+path, nil)
	if err != nil {
		return err
	}
	response, err := e.http.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", path, response.Status)
	}
	if into == nil {
		return nil
	}
	return json.Unmarshal(content, into)
}

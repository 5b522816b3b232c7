// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/pkg/reconciler"
)

const (
	// causePatience is how long a workload may be unready before we ask why:
	// most become ready sooner.
	causePatience = 3 * time.Second
	// causeInterval is how often we ask.
	causeInterval = 10 * time.Second
)

// causes finds out why workloads do not become ready: the reason is usually not
// in the workload, but in one of its pods.
type causes struct {
	now func() time.Time

	mu    sync.Mutex
	byKey map[client.ObjectKey]map[string]cause // component; wait
}

// cause is what is known about one unready workload.
type cause struct {
	since time.Time // it is unready, as far as we saw
	asked time.Time
	text  string
}

func newCauses(now func() time.Time) *causes {
	return &causes{now: now, byKey: map[client.ObjectKey]map[string]cause{}}
}

func (c *causes) forget(key client.ObjectKey) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.byKey, key)
}

// explain returns the causes for the waits that a message names, by waitID. It
// asks the cluster about those that are due. Passes over one component do not overlap.
func (c *causes) explain(ctx context.Context, key client.ObjectKey, waits []reconciler.Wait, reader client.Reader) map[string]string {
	now := c.now()
	c.mu.Lock()
	before := c.byKey[key]
	c.mu.Unlock()

	known := map[string]cause{}
	texts := map[string]string{}
	for i, wait := range byImportance(waits) {
		if !isWorkload(wait) {
			continue
		}
		id := waitID(wait)
		entry, ok := before[id]
		if !ok {
			entry.since = now
		}
		if i < maxNamed && now.Sub(entry.since) >= causePatience && now.Sub(entry.asked) >= causeInterval {
			entry.asked, entry.text = now, c.ask(ctx, wait, reader)
		}
		known[id] = entry
		texts[id] = entry.text
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(known) == 0 {
		delete(c.byKey, key)
	} else {
		c.byKey[key] = known
	}
	return texts
}

// ask never fails: a message without a cause is better than none.
func (c *causes) ask(ctx context.Context, wait reconciler.Wait, reader client.Reader) string {
	if reader == nil {
		return ""
	}
	text, err := podsCause(ctx, wait, reader)
	if err != nil {
		logf.FromContext(ctx).V(1).Info("cannot find out why a workload is not ready", "workload", wait.Key.String(), "error", err.Error())
		return ""
	}
	return text
}

// waitID identifies what is waited for; kinds of different groups may have one name.
func waitID(wait reconciler.Wait) string { return wait.Key.Group + "/" + wait.Key.String() }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"maps"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// keysOf returns the objects that a plan is about.
func keysOf(in plan.Input) []plan.Key {
	seen := make(map[plan.Key]bool, len(in.Desired)+len(in.Recorded))
	keys := make([]plan.Key, 0, len(in.Desired)+len(in.Recorded))
	add := func(key plan.Key) {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	for _, d := range in.Desired {
		add(d.Key)
	}
	for _, item := range in.Recorded {
		add(plan.KeyOf(item))
	}
	return keys
}

// look reads the given objects, those whose type was not served before, and
// the namespaces that objects are about to be created in. What cannot be read is
// Unknown; only the end of the context is an error.
func (r *Reconciler) look(ctx context.Context, in *plan.Input, keys []plan.Key) error {
	known := make(map[plan.Key]bool, len(keys))
	for _, key := range keys {
		known[key] = true
	}
	for key, live := range in.Live {
		if live.Existence == plan.Unknown && live.NotServed && !known[key] {
			keys = append(keys, key)
		}
	}
	if err := r.observe(ctx, in, keys); err != nil {
		return err
	}
	return r.observe(ctx, in, plan.Namespaces(in.Desired, in.Live))
}

func (r *Reconciler) observe(ctx context.Context, in *plan.Input, keys []plan.Key) error {
	if len(keys) == 0 {
		return nil
	}
	wanted := make(map[plan.Key]*plan.Desired, len(in.Desired))
	for i := range in.Desired {
		wanted[in.Desired[i].Key] = &in.Desired[i]
	}
	recorded := make(map[plan.Key]*v1alpha1.InventoryItem, len(in.Recorded))
	for i := range in.Recorded {
		recorded[plan.KeyOf(in.Recorded[i])] = &in.Recorded[i]
	}
	requests := make([]observe.Request, 0, len(keys))
	for _, key := range keys {
		request := observe.Request{Key: key, Desired: wanted[key], Recorded: recorded[key]}
		switch item := recorded[key]; {
		case request.Desired != nil:
			request.Version = request.Desired.Version
		case item != nil:
			request.Version = item.Version
		default:
			request.Version = "v1" // a namespace
		}
		requests = append(requests, request)
	}
	observed, err := r.observer.Observe(ctx, requests)
	maps.Copy(in.Live, observed)
	return err
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"slices"
	"sync"

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

// manner is how objects are looked at.
type manner struct {
	// ask reads them, whatever is known of them.
	ask bool
	// presume does not read those of which nothing says that they exist.
	presume bool
}

// look looks at the given objects, at those whose type was not served before, and
// at the namespaces that objects are about to be created in. What cannot be read
// is Unknown; only the end of the context is an error.
func (r *Reconciler) look(ctx context.Context, in *plan.Input, keys []plan.Key, how manner) error {
	known := make(map[plan.Key]bool, len(keys))
	for _, key := range keys {
		known[key] = true
	}
	var late []plan.Key
	for key, live := range in.Live {
		if live.Existence == plan.Unknown && live.NotServed && !known[key] {
			late = append(late, key)
		}
	}
	if !how.ask || len(late) > 0 {
		r.follow(ctx, *in)
	}
	if err := r.observe(ctx, in, keys, how); err != nil {
		return err
	}
	if err := r.observe(ctx, in, late, manner{presume: how.presume}); err != nil {
		return err
	}
	return r.observe(ctx, in, plan.Namespaces(in.Desired, in.Live), manner{})
}

// presumes tells whether a creation may find out by itself that its object exists.
// Not if one of the objects must not be there: then nothing is written before all
// of them were looked for.
func presumes(in plan.Input) bool {
	recorded := sync.OnceValue(func() map[plan.Key]*v1alpha1.InventoryItem { return itemsOf(in.Recorded) })
	return in.Cause == plan.Applying && !slices.ContainsFunc(in.Desired, func(d plan.Desired) bool {
		return d.Policies.Adoption == v1alpha1.AdoptionPolicyNever && unconfirmed(recorded()[d.Key])
	})
}

// unconfirmed tells whether no write of the object was ever answered.
func unconfirmed(item *v1alpha1.InventoryItem) bool {
	return item == nil || item.UID == "" && item.Digest == "" && item.Phase == v1alpha1.PhaseApplied
}

func itemsOf(items []v1alpha1.InventoryItem) map[plan.Key]*v1alpha1.InventoryItem {
	byKey := make(map[plan.Key]*v1alpha1.InventoryItem, len(items))
	for i := range items {
		byKey[plan.KeyOf(items[i])] = &items[i]
	}
	return byKey
}

// follow watches what the owner has.
func (r *Reconciler) follow(ctx context.Context, in plan.Input) {
	if r.settings.changed == nil {
		return
	}
	keys := keysOf(in)
	r.followed.add(in.Owner.ID, in.Owner.Ref, keys)
	r.observer.Follow(ctx, in.Owner.ID, requestsFor(in, keys, manner{}))
}

func (r *Reconciler) observe(ctx context.Context, in *plan.Input, keys []plan.Key, how manner) error {
	if len(keys) == 0 {
		return nil
	}
	observed, err := r.observer.Observe(ctx, requestsFor(*in, keys, how))
	for key, live := range observed {
		in.Live[key] = r.sealed(in.Owner, key, live)
	}
	return err
}

// sealed adds what the record of the object holds if it is the owner's.
func (r *Reconciler) sealed(owner plan.Owner, key plan.Key, live plan.Observation) plan.Observation {
	if live.Existence == plan.Present {
		live.Seal = r.settings.hasher.Seal(owner.ID, key.Group, key.Kind, key.Namespace, key.Name, string(live.UID))
	}
	return live
}

func requestsFor(in plan.Input, keys []plan.Key, how manner) []observe.Request {
	wanted := make(map[plan.Key]*plan.Desired, len(in.Desired))
	for i := range in.Desired {
		wanted[in.Desired[i].Key] = &in.Desired[i]
	}
	recorded := itemsOf(in.Recorded)
	twins := sync.OnceValue(func() plan.Equivalents { return plan.EquivalentsOf(in.Recorded) }) // at rest none is asked for
	requests := make([]observe.Request, 0, len(keys))
	for _, key := range keys {
		item := recorded[key]
		request := observe.Request{Owner: in.Owner, Key: key, Desired: wanted[key], Recorded: item, ForceRead: how.ask}
		// What exists and is ignored is never recorded: it would be created again and again.
		request.AssumeAbsent = how.presume && request.Desired != nil && unconfirmed(item) && !twins().Has(key) && request.Desired.Policies.Adoption != v1alpha1.AdoptionPolicyIgnore
		switch {
		case request.Desired != nil:
			request.Version = request.Desired.Version
		case item != nil:
			request.Version = item.Version
		default:
			request.Version = "v1" // a namespace
		}
		requests = append(requests, request)
	}
	return requests
}

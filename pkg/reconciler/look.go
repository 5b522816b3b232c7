// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
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
		if seen[d.Key] = d.Shared; !d.Shared {
			add(d.Key)
		}
	}
	for _, item := range in.Recorded {
		if !plan.IsSharedNamespace(in, item) {
			add(plan.KeyOf(item))
		}
	}
	return keys
}

// urgentReads is up to how many recorded objects are read if a user waits and the watches of their types are about to start.
const urgentReads = 16

// readMode decides which objects are read.
type readMode struct {
	// force reads them, whatever the watches know of them.
	force bool
	// assumeAbsent does not read objects of which nothing indicates that they exist.
	assumeAbsent bool
	// urgent does not wait until watches know which objects exist.
	urgent bool
}

// look observes the given objects, the objects of types that were not served before, and the
// namespaces of objects that are about to be created. An object that cannot be read is Unknown;
// only the end of the context is an error.
func (r *Reconciler) look(ctx context.Context, in *plan.Input, keys []plan.Key, how readMode) error {
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
	if !how.force || len(late) > 0 {
		r.watch(ctx, *in, !how.urgent || len(in.Recorded) > urgentReads)
	}
	if err := r.observe(ctx, r.observer, in, keys, how); err != nil {
		return err
	}
	if err := r.observe(ctx, r.observer, in, late, readMode{assumeAbsent: how.assumeAbsent}); err != nil {
		return err
	}
	namespaces := plan.Namespaces(in.Desired, in.Live)
	if r.settings.LocalOwners {
		// If the owner's namespace is being deleted, the server refuses creations in it, and it is
		// read then.
		namespaces = slices.DeleteFunc(namespaces, func(key plan.Key) bool { return key.Name == in.Owner.Ref.Namespace })
	}
	return r.observe(ctx, r.observer, in, namespaces, readMode{force: true}) // a watch does not keep the annotation automatic
}

// mayAssumeAbsent reports whether a creation may find out by itself that its object exists.
// If one of the objects must not exist, nothing is written before all of them were read.
func mayAssumeAbsent(in plan.Input) bool {
	recorded := sync.OnceValue(func() map[plan.Key]*v1alpha1.InventoryItem { return itemsOf(in.Recorded) })
	return in.Cause == plan.Applying && !slices.ContainsFunc(in.Desired, func(d plan.Desired) bool {
		return d.Policies.Adopts().RefusesAll() && unconfirmed(recorded()[d.Key])
	})
}

// unconfirmed reports whether no write of the object was ever answered.
func unconfirmed(item *v1alpha1.InventoryItem) bool {
	return item == nil || item.UID == "" && item.Digest == "" && item.Phase == vocabulary.PhaseApplied
}

func itemsOf(items []v1alpha1.InventoryItem) map[plan.Key]*v1alpha1.InventoryItem {
	byKey := make(map[plan.Key]*v1alpha1.InventoryItem, len(items))
	for i := range items {
		byKey[plan.KeyOf(items[i])] = &items[i]
	}
	return byKey
}

// watch watches the desired and recorded objects of the owner. With wait, it returns when the watches know which of the
// recorded ones exist, or after some seconds.
func (r *Reconciler) watch(ctx context.Context, in plan.Input, wait bool) {
	if r.settings.Changed == nil {
		return
	}
	keys := keysOf(in)
	r.watched.set(in.Owner.ID, in.Owner.Ref, slices.Concat(keys, sharedKeys(in)))
	r.observer.Watch(ctx, in.Owner.ID, requestsFor(in, keys, readMode{}), wait)
}

func (r *Reconciler) observe(ctx context.Context, by *observe.Observer, in *plan.Input, keys []plan.Key, how readMode) error {
	if len(keys) == 0 {
		return nil
	}
	observed, err := by.Observe(ctx, requestsFor(*in, keys, how))
	for key, live := range observed {
		in.Live[key] = r.withSeal(in.Owner, key, live)
	}
	return err
}

// withSeal adds the seal that the record of the object holds if the object is the owner's, and
// checks the seal of a namespace.
func (r *Reconciler) withSeal(owner plan.Owner, key plan.Key, live plan.Observation) plan.Observation {
	if automatic := live.Automatic; key == (plan.Key{Kind: "Namespace", Name: key.Name}) && live.Existence != plan.Unknown {
		live.Automatic = r.settings.hasher.Seal("", "Namespace", key.Name)
		if live.Existence == plan.Present && automatic != live.Automatic {
			live.Automatic = ""
		}
	}
	if live.Existence == plan.Present {
		live.Seal = r.settings.hasher.Seal(owner.ID, key.Group, key.Kind, key.Namespace, key.Name, string(live.UID))
	}
	return live
}

func requestsFor(in plan.Input, keys []plan.Key, how readMode) []observe.Request {
	desired := make(map[plan.Key]*plan.Desired, len(in.Desired))
	for i := range in.Desired {
		desired[in.Desired[i].Key] = &in.Desired[i]
	}
	recorded := itemsOf(in.Recorded)
	twins := sync.OnceValue(func() plan.Equivalents { return plan.EquivalentsOf(in.Recorded) }) // at rest they are not needed
	requests := make([]observe.Request, 0, len(keys))
	for _, key := range keys {
		item := recorded[key]
		request := observe.Request{Owner: in.Owner, Key: key, Desired: desired[key], Recorded: item, ForceRead: how.force}
		if item != nil && item.Phase == vocabulary.PhaseReleased && request.Desired == nil {
			request.ForceRead = true // a watch does not know the controller of an object
		}
		// Ignored objects are never recorded: they would be created again and again. An object that
		// is taken over exists.
		request.AssumeAbsent = how.assumeAbsent && request.Desired != nil && unconfirmed(item) && !twins().Has(key) && !request.Desired.Policies.Adopts().IgnoresOthers && len(request.Desired.Policies.AdoptFrom) == 0
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

// nextDriftCheck returns when the first object with a deferred drift check may be read;
// zero if none was. No watch triggers that read: the object may not change any more.
func (r *Reconciler) nextDriftCheck(in plan.Input) (next time.Time) {
	for key, live := range in.Live {
		if !live.Deferred {
			continue
		}
		if at := r.observer.DriftChecks.Next(in.Owner.ID, key, r.settings.Now()); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	return next
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// fewKeys is up to how many objects of one type and namespace are read one by
// one; more are looked for in a list.
const fewKeys = 2

// pageSize is the size of the pages in which objects are listed.
const pageSize = 500

// place is where objects can be listed.
type place struct {
	schema.GroupVersionKind
	namespace string
}

// lastLook looks once more at the objects that have left the record in this call
// because they are gone: a creation that was on its way for long, perhaps one of
// a predecessor of this process, may have put them back. Those that are there and
// bear our marks return to the record, as do those that cannot be read; it tells
// whether there are any. Nothing is asked if nothing has gone.
func (r *Reconciler) lastLook(ctx context.Context, c *call) (returned bool, err error) {
	places := map[place][]plan.Key{}
	items := map[plan.Key]v1alpha1.InventoryItem{}
	for _, item := range c.gone {
		key := plan.KeyOf(item)
		at := place{schema.GroupVersionKind{Group: item.Group, Version: item.Version, Kind: item.Kind}, item.Namespace}
		places[at], items[key] = append(places[at], key), item
	}
	look := plan.Input{Owner: c.in.Owner, Recorded: c.gone, Live: map[plan.Key]plan.Observation{}}
	var suspects []plan.Key
	for at, keys := range places {
		suspects = append(suspects, r.suspects(ctx, c.in.Owner, at, keys)...)
	}
	if err := r.observe(ctx, &look, suspects, manner{ask: true}); err != nil {
		return false, err
	}
	c.gone = nil
	for key, live := range look.Live {
		if live.Existence == plan.Absent || live.Existence == plan.Present && !c.in.Owner.Owns(live.Ownership) {
			continue
		}
		c.takeBack(items[key], live)
		returned = true
	}
	return returned, nil
}

// suspects returns those of the keys that may be there again. All objects of the
// place are listed: one whose label was stripped is ours by its annotation. Where they
// are so many that it costs less to read the keys one by one, that is done.
func (r *Reconciler) suspects(ctx context.Context, owner plan.Owner, at place, keys []plan.Key) []plan.Key {
	if len(keys) <= fewKeys {
		return keys
	}
	resource, err := r.target.Types().ResolveAny(ctx, at.GroupKind(), at.Version)
	if _, unserved := errors.AsType[*cluster.NotServedError](err); unserved {
		return nil // there are no objects of a type that is not served
	}
	found := map[string]bool{}
	for page := (cluster.ListOptions{Limit: pageSize}); err == nil; {
		list, failed := r.target.Objects().ListMetadata(ctx, resource, at.namespace, page)
		if err = failed; err != nil {
			break
		}
		for _, object := range list.Items {
			ref, _ := plan.ParseOwnerRef(object.Annotations[r.name+"/"+v1alpha1.AnnotationOwner])
			found[object.Name] = owner.Owns(plan.Ownership{OwnerID: object.Labels[r.name+"/"+v1alpha1.LabelOwnerID], Ref: ref})
		}
		if page.Continue = list.Continue; page.Continue == "" {
			break
		}
		if left := list.RemainingItemCount; left == nil || *left/pageSize >= int64(len(keys)) {
			return keys
		}
	}
	if err != nil {
		return keys // whoever must not list may still read
	}
	var suspects []plan.Key
	for _, key := range keys {
		if found[key.Name] {
			suspects = append(suspects, key)
		}
	}
	return suspects
}

// takeBack returns an object to the record.
func (c *call) takeBack(item v1alpha1.InventoryItem, live plan.Observation) {
	key := plan.KeyOf(item)
	item.UID, item.Seal, item.Phase = live.UID, live.Seal, v1alpha1.PhaseApplied
	// Of which manifest it was made is not known, and what happened to the former one says nothing.
	item.Digest, item.Finished, item.UnreadSince, item.UnreadLast = "", "", nil, nil
	c.in.Recorded = append(c.in.Recorded, item)
	c.in.Live[key] = live
	message, warning := "may be there again after it was removed: "+live.Message, ""
	if live.Existence == plan.Present {
		message, warning = "was there again after it was removed, with our marks; it is removed once more", plan.WarnOrphanFound
	}
	c.told = append(c.told, Note{Key: key, Message: message, Warning: warning})
	c.returned = append(c.returned, key)
}

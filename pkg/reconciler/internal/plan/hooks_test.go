// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// beforeHook checks the steps of a deletion against what runs before and after
// it, and reports whether that is all there is to check.
func (o *oracle) beforeHook(s Step) (done bool) {
	if o.driver.skipHooks {
		return false
	}
	o.watchHooks()
	w := o.driver.world
	i := slices.IndexFunc(o.driver.hooks, func(d Desired) bool { return d.Key == s.Key })
	writes := s.Verb != VerbDelete && s.Verb != VerbOrphan
	switch {
	case i < 0 && writes:
		return true // a namespace that they need
	case i < 0 || !writes && s.Reason == ReasonDeleting:
		o.removes = true
		for _, hook := range o.driver.hooks {
			if hook.Policies.RunOn == policy.RunOnPreDelete && !o.ran[hook.Key] {
				w.violate("%s %s: %s has not run before", s.Verb, s.Key, hook.Key)
			}
		}
		return false
	case !writes:
		return true // it is made again, or purged
	}
	hook := o.driver.hooks[i]
	if o.ran[s.Key] {
		w.violate("%s %s: it runs twice", s.Verb, s.Key)
	}
	if hook.Policies.RunOn == policy.RunOnPreDelete && o.removes {
		w.violate("%s %s: the deletion has started", s.Verb, s.Key)
	}
	if hook.Policies.RunOn == policy.RunOnPostDelete {
		o.checkEverythingIsGone(s)
	}
	return true
}

// watchHooks sees which of the objects are on record to have done their work.
func (o *oracle) watchHooks() {
	for _, item := range o.driver.durable {
		if hasRun(item) {
			o.ran[KeyOf(item)] = true
		}
	}
}

// hasRun reports whether the object is on record to have done its work.
func hasRun(item v1alpha1.InventoryItem) bool {
	return item.RunOn != "" && (item.Phase == v1alpha1.PhaseCompleted || item.Phase == v1alpha1.PhaseCompleting)
}

// checkEverythingIsGone checks that nothing of ours is left but what an object
// needs that runs after the deletion.
func (o *oracle) checkEverythingIsGone(s Step) {
	for _, item := range o.driver.durable {
		key := KeyOf(item)
		live := o.driver.world.objects[key]
		hasHooks := key.Kind == "Namespace" && slices.ContainsFunc(o.driver.hooks, func(d Desired) bool { return d.Key.Namespace == key.Name })
		hook := slices.ContainsFunc(o.driver.hooks, func(d Desired) bool {
			return d.Key == key && d.Policies.RunOn == policy.RunOnPostDelete && item.RunOn != ""
		})
		if !hasHooks && !hook && live != nil && live.holder == heldByUs {
			o.driver.world.violate("%s %s: %s is still there", s.Verb, s.Key, key)
		}
	}
}

// isHookNamespace reports whether what runs after the deletion lives in the namespace.
func (o *oracle) isHookNamespace(key Key) bool {
	return o.driver.cause == Deleting && key.Kind == "Namespace" && slices.ContainsFunc(o.driver.hooks, func(d Desired) bool {
		return d.Key.Namespace == key.Name && d.Policies.RunOn == policy.RunOnPostDelete
	})
}

// comesAfter reports whether an object runs after the deletion and the other does not
// wait for it. The latter may be asked for again meanwhile: it was orphaned because
// it was in use, and a crash came before the record.
func (o *oracle) comesAfter(item v1alpha1.InventoryItem, other Key) bool {
	return item.RunOn == string(policy.RunOnPostDelete) && !o.isHook(other) && !o.isHookNamespace(other)
}

func (o *oracle) isHook(key Key) bool {
	return o.driver.cause == Deleting && slices.ContainsFunc(o.driver.hooks, func(d Desired) bool { return d.Key == key })
}

// isDueHook reports whether the object runs before or after the deletion and has
// not done so yet. Until then it is desired; afterwards it goes like any other.
func (o *oracle) isDueHook(key Key, item v1alpha1.InventoryItem) bool {
	return o.isHook(key) && !hasRun(item)
}

// hookStock is what runs before and after deletions. One of them may have been
// an ordinary object.
var hookStock = [][2]string{
	{"ServiceAccount", "shop/backup"}, {"Job", "shop/backup"}, {"Job", "shop/migrate"}, {"ConfigMap", "tenants/last"},
	{"Job", "tenants/last"}, {"Job", "extra/last"}, {"ConfigMap", "shop/last"},
}

// drawHooks chooses what runs before and after the deletion.
func (s *simulation) drawHooks() {
	s.driver.hooks = nil
	for _, name := range hookStock {
		if s.chance(60) {
			continue
		}
		key, err := keyOf(name[0], name[1])
		if err != nil {
			s.t.Fatal(err)
		}
		set := defaultPolicies()
		set.RunOn = pick(s, policy.RunOnPreDelete, policy.RunOnPostDelete)
		set.Order.Apply, set.Order.Delete = pick[int16](s, -1, 0, 0, 1), pick[int16](s, -1, 0, 0, 1)
		if s.chance(20) {
			set.Order.Purge = new(pick[int16](s, 1, 2))
		}
		if key.Namespace == "shop" && s.chance(20) {
			set.Delete = pick(s, v1alpha1.DeletePolicyOrphan, v1alpha1.DeletePolicyOrphanOnDelete)
		}
		s.candidates[key], s.world.immutable[key] = set, false
		s.driver.desired = slices.DeleteFunc(s.driver.desired, func(d Desired) bool { return d.Key == key })
		s.driver.hooks = append(s.driver.hooks, desiredObject(key, pick(s, "1", "2"), set))
		s.note("hook %s %s", key, set.RunOn)
	}
}

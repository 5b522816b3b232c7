// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// resolveDependencies replaces references by exact ones, and checks each.
func (x index) resolveDependencies(dependent *item) {
	resolved := make([]policy.Reference, 0, len(dependent.policies.DependsOn))
	for _, reference := range dependent.policies.DependsOn {
		other := x.find(reference, dependent.key.Namespace)
		if other == nil {
			// An object that has mistakes itself may be the one that is meant.
			if !x.broken[partial{reference.Kind, reference.Name}] {
				dependent.mistake("depends on %s, which is not among the objects of this component", reference)
			}
			continue
		}
		if x.checkDependency(dependent, other) {
			exact := policy.Reference{Group: other.key.Group, Kind: other.key.Kind, Namespace: other.key.Namespace, Name: other.key.Name}
			if !slices.Contains(resolved, exact) {
				resolved = append(resolved, exact)
			}
		}
	}
	dependent.policies.DependsOn = nil
	if len(resolved) > 0 {
		dependent.policies.DependsOn = resolved
	}
}

// find returns the item that a reference means: in the namespace it names, else
// in that of the dependent, else one without namespace.
func (x index) find(reference policy.Reference, namespace string) *item {
	key := plan.Key{Group: reference.Group, Kind: reference.Kind, Namespace: reference.Namespace, Name: reference.Name}
	if key.Namespace == "" {
		key.Namespace = namespace
		if found := x.items[key]; found != nil {
			return found
		}
		key.Namespace = ""
	}
	return x.items[key]
}

// checkDependency notes why the dependent could wait for the other forever.
func (x index) checkDependency(dependent, other *item) bool {
	before := len(dependent.mistakes)
	mine, its := dependent.policies, other.policies
	switch {
	case other == dependent:
		dependent.mistake("depends on itself")
	case !other.ruled:
		// Its rules are not known, because they have mistakes.
	case mine.RunOn == policy.RunOnApply && its.RunOn != policy.RunOnApply:
		dependent.mistake("depends on the %s, which is applied only when the component is deleted", other.key)
	case mine.RunOn == policy.RunOnPreDelete && its.RunOn == policy.RunOnPostDelete:
		dependent.mistake("is to run before the deletion, but depends on the %s, which runs after it", other.key)
	case mine.RunOn == policy.RunOnPostDelete && its.RunOn != policy.RunOnPostDelete:
		dependent.mistake("is to run after the deletion, but the %s which it depends on is gone by then", other.key)
	case mine.RunOn == its.RunOn:
		x.checkDirection(dependent, other)
	}
	return len(dependent.mistakes) == before
}

// checkDirection notes where the order of the waves and stages contradicts a
// dependency. Waves and stages order namespaces and types before what they
// hold; so an object that could wait for itself by way of these is found here, too.
func (x index) checkDirection(dependent, other *item) {
	mine, its := dependent.policies, other.policies
	switch {
	case x.bases(other)[dependent] != "":
		dependent.mistake("depends on the %s, which cannot exist without it", other.key)
	case its.Order.Apply > mine.Order.Apply:
		dependent.mistake("depends on the %s, whose apply-order %d is greater than %d", other.key, its.Order.Apply, mine.Order.Apply)
	case its.Order.Apply == mine.Order.Apply && x.stage(other.key) > x.stage(dependent.key):
		dependent.mistake("depends on the %s, which is applied later in the same wave because of its kind; give the %s a smaller apply-order than %d",
			other.key, other.key, mine.Order.Apply)
	}
	if its.Order.Delete < mine.Order.Delete && goesOnDelete(mine.Delete) && goesOnDelete(its.Delete) && mine.RunOn == policy.RunOnApply {
		dependent.mistake("depends on the %s, whose delete-order %d is less than %d, so that it would be deleted first", other.key, its.Order.Delete, mine.Order.Delete)
	}
}

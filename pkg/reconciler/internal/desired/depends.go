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
	case mine.RunOn == its.RunOn && its.Order.Apply > mine.Order.Apply:
		dependent.mistake("depends on the %s, whose apply-order %d is greater than %d", other.key, its.Order.Apply, mine.Order.Apply)
	case x.bases(other)[dependent] != "":
		dependent.mistake("depends on the %s, which cannot exist without it", other.key)
	}
	return len(dependent.mistakes) == before
}

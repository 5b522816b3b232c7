// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

func relate(items []*item, managed []v1alpha1.TypeInfo) {
	var defined []v1alpha1.TypeInfo
	for _, item := range items {
		defined = append(defined, item.defines...)
	}
	known := index{
		stage:  plan.ApplyStages(defined, managed),
		items:  make(map[plan.Key]*item, len(items)),
		types:  map[schema.GroupKind]*item{},
		groups: map[string]*item{},
		broken: map[plan.Key]bool{},
	}
	for _, item := range items {
		if item.broken || item.excluded {
			known.broken[plan.Key{Kind: item.key.Kind, Name: item.key.Name}] = true
		} else {
			known.add(item)
		}
	}
	for _, item := range items {
		if !item.broken && !item.excluded {
			known.checkOrder(item)
			known.resolveDependencies(item)
		}
	}
	known.checkCycles(items)
}

// index finds items by their keys and by the types that they bring.
type index struct {
	// stage returns in which stage of its wave an object is applied.
	stage func(plan.Key) int
	items map[plan.Key]*item
	types map[schema.GroupKind]*item
	// groups holds the items that bring every kind of a group.
	groups map[string]*item
	// broken are the kinds and names of items that have mistakes.
	broken map[plan.Key]bool
}

func (x index) add(added *item) {
	if first, exists := x.items[added.key]; exists {
		added.fail("is defined more than once (duplicate), as %s and as %s", first.place, added.place)
		return
	}
	x.items[added.key] = added
	for _, defined := range added.defines {
		if defined.Kind == "*" {
			x.groups[defined.Group] = added
		} else {
			x.types[schema.GroupKind{Group: defined.Group, Kind: defined.Kind}] = added
		}
	}
}

// prerequisite is an item that another one cannot exist without, with the reason.
type prerequisite struct {
	*item
	why string
}

// prerequisites returns the prerequisites of an item, ordered by their keys.
func (x index) prerequisites(of *item) (found []prerequisite) {
	add := func(base *item, why string) {
		if base != nil && base != of {
			found = append(found, prerequisite{base, why})
		}
	}
	if of.key.Namespace != "" {
		add(x.items[plan.Key{Kind: "Namespace", Name: of.key.Namespace}], "lives in")
	}
	add(x.types[of.key.GroupKind()], "is an instance of")
	add(x.groups[of.key.Group], "is an instance of")
	return found
}

// checkOrder finds orders in which an object comes before its prerequisites, or goes after them.
func (x index) checkOrder(checked *item) {
	for _, base := range x.prerequisites(checked) {
		checked.checkOrderAfter(base.item, base.why)
	}
}

func (i *item) checkOrderAfter(base *item, why string) {
	mine, its := i.policies, base.policies
	if !i.policiesValid || !base.policiesValid || its.RunOn != policy.RunOnApply {
		return
	}
	if mine.RunOn == policy.RunOnApply && mine.Order.Apply < its.Order.Apply {
		i.mistake("its apply-order %d is less than %d, that of the %s which it %s", mine.Order.Apply, its.Order.Apply, base.key, why)
	}
	if policy.OrphansOnDelete(its.Delete) || policy.OrphansOnDelete(mine.Delete) {
		return
	}
	if mine.RunOn == policy.RunOnApply && mine.Order.Delete > its.Order.Delete {
		i.mistake("its delete-order %d is greater than %d, that of the %s which it %s", mine.Order.Delete, its.Order.Delete, base.key, why)
	}
}

// resolveDependencies replaces references by exact ones, and checks each.
func (x index) resolveDependencies(dependent *item) {
	resolved := make([]policy.Reference, 0, len(dependent.policies.DependsOn))
	for _, reference := range dependent.policies.DependsOn {
		other := x.find(reference, dependent.key.Namespace)
		if other == nil {
			// The reference may mean an object that has mistakes itself.
			if !x.broken[plan.Key{Kind: reference.Kind, Name: reference.Name}] {
				dependent.mistake("depends on %q, which is not among the objects of this component", reference)
			}
			continue
		}
		if x.checkDependency(dependent, other) {
			if exact := policy.Reference(other.key); !slices.Contains(resolved, exact) {
				resolved = append(resolved, exact)
			}
		}
	}
	dependent.policies.DependsOn = nil
	if len(resolved) > 0 {
		dependent.policies.DependsOn = resolved
	}
}

// find returns the item that a reference means: in the namespace it names, else in the namespace of
// the dependent, else an item without namespace.
func (x index) find(reference policy.Reference, namespace string) *item {
	key := plan.Key(reference)
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
	case !other.policiesValid:
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

// checkDirection notes where the order of the waves and stages contradicts a dependency. Waves and
// stages order namespaces and types before their objects; so an object that could wait for itself
// by way of these is found here, too.
func (x index) checkDirection(dependent, other *item) {
	mine, its := dependent.policies, other.policies
	switch {
	case slices.ContainsFunc(x.prerequisites(other), func(p prerequisite) bool { return p.item == dependent }):
		dependent.mistake("depends on the %s, which cannot exist without it", other.key)
	case its.Order.Apply > mine.Order.Apply:
		dependent.mistake("depends on the %s with the apply-order %d, which is greater than %d", other.key, its.Order.Apply, mine.Order.Apply)
	case its.Order.Apply == mine.Order.Apply && x.stage(other.key) > x.stage(dependent.key):
		dependent.mistake("depends on the %s, which is applied later in the same wave because of its kind; give the %s a smaller apply-order than %d",
			other.key, other.key, mine.Order.Apply)
	}
	if its.Order.Delete < mine.Order.Delete && !policy.OrphansOnDelete(mine.Delete) && !policy.OrphansOnDelete(its.Delete) && mine.RunOn == policy.RunOnApply {
		dependent.mistake("depends on the %s with the delete-order %d, which is less than %d, so that it would be deleted first", other.key, its.Order.Delete, mine.Order.Delete)
	}
}

// checkCycles finds items that depend on themselves through other items. Dependencies must be
// resolved before. A cycle is noted at the item where it was entered.
func (x index) checkCycles(items []*item) {
	w := cycleSearch{index: x, depth: map[*item]int{}}
	for _, item := range items {
		if !item.broken && len(item.policies.DependsOn) > 0 && w.depth[item] == 0 {
			w.visit(item)
		}
	}
}

// done is the state of items after all their dependencies were followed.
const done = -1

// cycleSearch follows dependencies, depth first.
type cycleSearch struct {
	index index
	// depth is the position in path, from 1, of the items on the current path.
	depth map[*item]int
	path  []*item
}

func (w *cycleSearch) visit(at *item) {
	w.path = append(w.path, at)
	w.depth[at] = len(w.path)
	for _, reference := range at.policies.DependsOn {
		next := w.index.items[plan.Key(reference)]
		if next == nil {
			continue
		}
		switch depth := w.depth[next]; {
		case depth == 0:
			w.visit(next)
		case depth > 0:
			next.mistake("depends on itself: %s", cycleText(w.path[depth-1:]))
		}
	}
	w.path = w.path[:len(w.path)-1]
	w.depth[at] = done
}

// cycleText describes a path of dependencies back to its start.
func cycleText(path []*item) string {
	const most = 10
	var names []string
	for i, item := range path {
		if i == most {
			names = append(names, "...")
			break
		}
		names = append(names, item.key.String())
	}
	return strings.Join(append(names, path[0].key.String()), " -> ")
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// relate checks the items against each other.
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
		broken: map[partial]bool{},
	}
	for _, item := range items {
		if item.broken || item.aside {
			known.broken[partial{item.key.Kind, item.key.Name}] = true
		} else {
			known.add(item)
		}
	}
	for _, item := range items {
		if !item.broken && !item.aside {
			known.checkOrder(item)
			known.resolveDependencies(item)
		}
	}
	known.checkCycles(items)
}

// index finds items by what they are and by the types that they bring.
type index struct {
	// stage tells in which stage of its wave an object is applied.
	stage func(plan.Key) int
	items map[plan.Key]*item
	types map[schema.GroupKind]*item
	// groups holds those that bring every kind of a group.
	groups map[string]*item
	broken map[partial]bool
}

// partial is what may be known of an item that has mistakes.
type partial struct{ kind, name string }

func (x index) add(added *item) {
	if first, taken := x.items[added.key]; taken {
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

// bases returns the items that an item cannot exist without, with the reason.
func (x index) bases(of *item) map[*item]string {
	found := map[*item]string{}
	if of.key.Namespace != "" {
		if namespace := x.items[plan.Key{Kind: "Namespace", Name: of.key.Namespace}]; namespace != nil {
			found[namespace] = "lives in"
		}
	}
	if definition := x.types[of.key.GroupKind()]; definition != nil {
		found[definition] = "is an instance of"
	}
	if service := x.groups[of.key.Group]; service != nil {
		found[service] = "is an instance of"
	}
	delete(found, of)
	return found
}

// checkOrder finds orders in which an object comes before what it cannot exist
// without, or goes after it.
func (x index) checkOrder(checked *item) {
	bases := x.bases(checked)
	ordered := make([]*item, 0, len(bases))
	for base := range bases {
		ordered = append(ordered, base)
	}
	slices.SortFunc(ordered, func(a, b *item) int { return a.key.Compare(b.key) })
	for _, base := range ordered {
		checked.checkOrderAfter(base, bases[base])
	}
}

func (i *item) checkOrderAfter(base *item, why string) {
	mine, its := i.policies, base.policies
	if !i.ruled || !base.ruled || its.RunOn != policy.RunOnApply {
		return
	}
	if mine.RunOn == policy.RunOnApply && mine.Order.Apply < its.Order.Apply {
		i.mistake("its apply-order %d is less than %d, that of the %s which it %s", mine.Order.Apply, its.Order.Apply, base.key, why)
	}
	if !goesOnDelete(its.Delete) || !goesOnDelete(mine.Delete) {
		return
	}
	if mine.RunOn == policy.RunOnApply && mine.Order.Delete > its.Order.Delete {
		i.mistake("its delete-order %d is greater than %d, that of the %s which it %s", mine.Order.Delete, its.Order.Delete, base.key, why)
	}
}

// goesOnDelete tells whether an object is deleted with its component.
func goesOnDelete(p v1alpha1.DeletePolicy) bool {
	return p == v1alpha1.DeletePolicyDelete || p == v1alpha1.DeletePolicyOrphanOnApply
}

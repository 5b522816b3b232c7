// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"errors"
	"fmt"
	"slices"

	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// dependenciesOf returns the dependencies of a wanted object as the record keeps them.
func dependenciesOf(d *Desired) []string {
	if len(d.Policies.DependsOn) == 0 {
		return nil
	}
	references := make([]string, len(d.Policies.DependsOn))
	for i, reference := range d.Policies.DependsOn {
		references[i] = Key(reference).reference()
	}
	slices.Sort(references)
	return slices.Compact(references)
}

// RecordOf returns what the record keeps of references as an object names them. One
// without a namespace means an object of the same namespace, or of none: both are
// kept, because one of them does not exist.
func RecordOf(references []policy.Reference, namespace string) []string {
	var kept []string
	for _, reference := range references {
		kept = append(kept, Key(reference).reference())
		if reference.Namespace == "" && namespace != "" {
			reference.Namespace = namespace
			kept = append(kept, Key(reference).reference())
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// tie adds what the object is about to depend on to what it did so far: as long
// as the answer to the write is outstanding, it may be either. It returns both.
func (u *unit) tie() []string {
	both := slices.Concat(u.item.DependsOn, dependenciesOf(u.desired))
	slices.Sort(both)
	if both = slices.Compact(both); len(both) > len(u.item.DependsOn) {
		u.item.DependsOn = both
	}
	return both
}

// findNeeds resolves the dependencies of what is wanted. Whoever built the
// wanted objects has checked them; so an edge to nowhere is no mistake of a user.
func (w *work) findNeeds() error {
	var mistakes []error
	for _, u := range w.units {
		if u.desired == nil {
			continue
		}
		for _, reference := range u.desired.Policies.DependsOn {
			need := w.byKey[Key(reference)]
			if need == nil || need.desired == nil {
				mistakes = append(mistakes, fmt.Errorf("%s: depends on %s, which is not desired", u.key, Key(reference)))
				continue
			}
			u.needs = append(u.needs, need)
		}
		slices.SortFunc(u.needs, func(a, b *unit) int { return a.key.Compare(b.key) })
	}
	for _, u := range w.units {
		if cutCycles(u, nil) {
			mistakes = append(mistakes, fmt.Errorf("%s: depends on itself", u.key))
		}
	}
	w.forgetVisits()
	return errors.Join(mistakes...)
}

// cutCycles removes the edges that lead back to where the walk came from, and
// tells whether there were any. It appends what it visits to order, what is needed first.
func cutCycles(u *unit, order *[]*unit) (found bool) {
	if u.visited {
		return false
	}
	u.visited, u.visiting = true, true
	u.needs = slices.DeleteFunc(u.needs, func(need *unit) bool {
		if need.visiting {
			found = true
			return true
		}
		found = cutCycles(need, order) || found
		return false
	})
	u.visiting = false
	if order != nil {
		*order = append(*order, u)
	}
	return found
}

func (w *work) forgetVisits() {
	for _, u := range w.units {
		u.visited = false
	}
}

// applyInOrder applies the object after those of its stage that it depends on.
func (w *work) applyInOrder(u *unit) {
	if u.visited {
		return
	}
	u.visited = true
	for _, need := range u.needs {
		if need.item.ApplyOrder == u.item.ApplyOrder && applyStage(need) == applyStage(u) {
			w.applyInOrder(need)
		}
	}
	for _, need := range u.needs {
		if !need.settled {
			w.holdFor(u, need)
			return
		}
	}
	w.apply(u)
}

// holdFor lets the object wait for another, and what comes after it in its
// wave wait with it.
func (w *work) holdFor(u, need *unit) {
	u.stuck = w.holdOne(u, "waits for "+need.key.String()+", which it depends on", need.jammed)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/rights"
)

// call is one Apply or Delete under way.
type call struct {
	in       input
	steps    map[string]int
	looks    map[plan.Key]int
	writes   map[plan.Key]int
	recorded int // at the start
	notes    map[Note]bool
	told     []Note
	// strangers are wanted, were not recorded at the start, and were not looked at.
	strangers map[plan.Key]bool
	// gone has left the record, because it does not exist any more.
	gone     []v1alpha1.InventoryItem
	returned []plan.Key
	// errs are the failures that no later step has made up for.
	errs map[plan.Key]error
	// unavailable is set when the server did not answer a step, or had too much to do.
	unavailable bool
	// reviewed and reviewedAgain are set when the rights of the identity were
	// reviewed, and when that was done again because something was forbidden.
	reviewed, reviewedAgain bool
	missing                 rights.Missing
	// refused are the objects whose write was forbidden.
	refused map[plan.Key]bool
	// retried is set when refused creations were given their second try.
	retried bool
}

func newCall(in input) *call {
	c := &call{
		in: in, recorded: len(in.Recorded), steps: map[string]int{}, looks: map[plan.Key]int{}, writes: map[plan.Key]int{},
		notes: map[Note]bool{}, errs: map[plan.Key]error{}, strangers: make(map[plan.Key]bool, len(in.Desired)),
		refused: map[plan.Key]bool{},
	}
	for _, wanted := range in.Desired {
		c.strangers[wanted.Key] = true
	}
	for _, item := range in.Recorded {
		delete(c.strangers, plan.KeyOf(item))
	}
	return c
}

// remember collects the notes of a plan, and what it saw gone.
func (c *call) remember(p plan.Plan) {
	c.gone = append(c.gone, p.Gone...)
	for _, note := range p.Notes {
		c.note(note)
	}
}

func (c *call) note(note Note) {
	if !c.notes[note] {
		c.notes[note] = true
		c.told = append(c.told, note)
	}
}

// fold takes over the results of a plan's steps and returns the objects that
// must be looked at again before the next plan.
func (c *call) fold(p plan.Plan, results []plan.Result, now metav1.Time) (again []plan.Key) {
	blind := c.blind(results)
	c.in.Recorded = plan.Fold(p.Inventory, c.in.Live, results, now)
	for _, result := range results {
		key := result.Step.Key
		if _, superseded := errors.AsType[*SupersededError](result.Err); superseded {
			continue // it ends the call, and is no matter of the object
		}
		for _, note := range result.Notes {
			c.note(note)
		}
		switch {
		case result.Blocked != "":
			c.in.Failed[key] = plan.Failure{Blocked: true, Message: result.Blocked, BlockingTypes: result.BlockingTypes}
		case result.Err == nil:
			c.done(result)
			continue
		case execute.IsConflict(result.Err) && c.looks[key] < maxLooks:
			c.looks[key]++
		case blind[key] && !execute.IsUnavailable(result.Err):
			// Why the server refuses to create what exists may have other reasons
			// than that, such as a port that the object itself has taken. One that has
			// too much to do has not looked.
		case execute.IsNamespaceGone(result.Err) && c.looks[key] < maxLooks:
			// The namespace is not as it was seen, so the plan will be another.
			c.looks[key]++
			again = append(again, plan.Key{Kind: "Namespace", Name: key.Namespace})
		default:
			c.in.Failed[key] = plan.Failure{Immutable: execute.IsImmutable(result.Err), AlreadyAllocated: execute.IsTaken(result.Err), Message: result.Err.Error()}
			c.errs[key] = result.Err
			if execute.IsForbidden(result.Err) {
				c.refused[key] = true
			}
			c.unavailable = c.unavailable || execute.IsUnavailable(result.Err)
			c.blame(key, result.Err)
		}
		again = append(again, key)
	}
	c.retried = c.retried || plan.DropResolvedFailures(c.in.Input, results)
	return again
}

// blame says why nothing was created in a namespace that does not exist: it may not be
// read, so that it was not seen to be missing. That is one failure, whatever else it stops.
func (c *call) blame(key plan.Key, err error) {
	namespace := plan.Key{Kind: "Namespace", Name: key.Namespace}
	seen, creates := c.in.Live[namespace], c.in.MissingNamespaces == v1alpha1.MissingNamespacesPolicyCreate
	if !creates || !seen.Forbidden || !execute.IsNamespaceGone(err) || !apierrors.IsNotFound(err) {
		return
	}
	delete(c.errs, key)
	c.refused[namespace] = true
	c.errs[namespace] = &ForbiddenError{Object: namespace.String(), Message: "does not exist, and is not created, because it " + seen.Message}
}

// blind are the objects among the results that nobody had looked for.
func (c *call) blind(results []plan.Result) map[plan.Key]bool {
	blind := map[plan.Key]bool{}
	for _, result := range results {
		if key := result.Step.Key; c.in.Live[key].Existence == plan.NotFetched {
			blind[key] = true
			if result.Err == nil {
				delete(c.strangers, key) // it was created
			}
		}
	}
	return blind
}

// done counts a step that succeeded. An object that is written again and again
// is given up for this call.
func (c *call) done(result plan.Result) {
	key, verb := result.Step.Key, string(result.Step.Verb)
	if result.Step.Verb == plan.VerbDryRun {
		c.in.DryRunAccepted[key] = true
		return // nothing was written
	}
	c.tellDone(result.Step)
	delete(c.in.Failed, key)
	delete(c.errs, key)
	if result.Orphaned {
		verb = string(plan.VerbOrphan)
	}
	c.steps[verb]++
	if c.writes[key]++; c.writes[key] >= maxWrites {
		err := fmt.Errorf("%s: was written %d times in a row (%s), because the server does not keep what was written; find out what changes it",
			key, maxWrites, result.Step.Reason)
		c.in.Failed[key] = plan.Failure{Message: err.Error()}
		c.errs[key] = err
	}
}

// end forgets what runs before and after a deletion that is done.
func (c *call) end(p plan.Plan) {
	if c.in.Cause == plan.Deleting && p.Done() {
		c.in.hooks, c.in.Desired = false, nil
	}
}

// err returns what failed, joined.
func (c *call) err() error {
	failed := slices.SortedFunc(maps.Keys(c.errs), plan.Key.Compare)
	errs := make([]error, 0, len(failed))
	for _, key := range failed {
		errs = append(errs, c.errs[key])
	}
	return errors.Join(errs...)
}

// inventory is the record with these items. What a newer version wrote into it
// stays, until nothing is left that it could be about.
func (c *call) inventory(items []v1alpha1.InventoryItem) v1alpha1.Inventory {
	if len(items) == 0 && !c.in.hooks {
		return v1alpha1.Inventory{}
	}
	return v1alpha1.Inventory{
		Format: v1alpha1.InventoryFormat, Target: c.in.target, Items: items, DeleteHooks: c.in.hooks, Unknown: c.in.unknown,
	}
}

// outcome closes the call. Conflicts of ownership are errors: nobody but a
// person can say who is right.
func (c *call) outcome(p plan.Plan) Outcome {
	adoption := adoptionOf(c.in.Input)
	for _, wait := range p.Waiting {
		if wait.Reason == plan.WaitFailed && c.in.Cause == plan.Deleting {
			c.errs[wait.Key] = &HookFailedError{Object: wait.Key.String(), Message: wait.Message}
		}
		if wait.Reason == plan.WaitForbidden {
			c.errs[wait.Key] = &ForbiddenError{Object: wait.Key.String(), Message: wait.Message}
		}
		if wait.Reason == plan.WaitOwner {
			c.errs[wait.Key] = &OwnerConflictError{Object: wait.Key.String(), Message: wait.Message, Policy: adoption()[wait.Key]}
		}
	}
	settled, total := p.Settled, p.Total
	if c.in.Cause == plan.Deleting {
		// What was removed is not part of the plan any more.
		settled, total = max(c.recorded-len(c.in.Recorded), 0), c.recorded
	}
	return Outcome{
		Inventory:      c.inventory(c.in.Recorded),
		Waiting:        p.Waiting,
		Foreign:        c.foreign(p),
		Settled:        settled,
		Total:          total,
		ManifestDigest: c.in.manifest,
		Steps:          c.steps,
		Notes:          c.told,
		Drifted:        p.Deviations,
		Returned:       c.returned,
		Missing:        c.missing,
	}
}

// unsaved closes a call whose record is not durable. If there was no way to
// make it so, the caller has to.
func (c *call) unsaved(p plan.Plan, tried bool) Outcome {
	if tried {
		return c.outcome(p)
	}
	c.in.Recorded = p.Inventory
	outcome := c.outcome(p)
	outcome.Unrecorded = true
	return outcome
}

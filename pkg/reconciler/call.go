// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/rights"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// maxLooks bounds how often one call reads one object again because a write met another state than
// the plan had seen.
const maxLooks = 3

// maxWrites bounds how often one object is written in one call. More than a deletion and a creation
// is needed only if the server does not keep the written content.
const maxWrites = 4

// call is one Apply or Delete under way.
type call struct {
	in       input
	steps    map[string]int
	looks    map[plan.Key]int
	writes   map[plan.Key]int
	recorded int // at the start
	noted    map[plan.Note]bool
	notes    []plan.Note
	// unlisted are desired, were not recorded at the start, and were not read yet.
	unlisted map[plan.Key]bool
	// gone are the items that were dropped from the record, because the objects do not exist any more.
	gone []v1alpha1.InventoryItem
	// errs are the failures that no later step has made up for.
	errs map[plan.Key]error
	// unavailable is set when the server did not answer a step, or had too much to do.
	unavailable bool
	// missing are the rights that the server has named in the answers 403 of this call.
	missing []rights.Right
	// retried is set when refused creations are tried a second time.
	retried bool
}

func newCall(in input) *call {
	c := &call{
		in: in, recorded: len(in.Recorded), steps: map[string]int{}, looks: map[plan.Key]int{}, writes: map[plan.Key]int{},
		noted: map[plan.Note]bool{}, errs: map[plan.Key]error{}, unlisted: make(map[plan.Key]bool, len(in.Desired)),
	}
	for _, desired := range in.Desired {
		c.unlisted[desired.Key] = true
	}
	for _, item := range in.Recorded {
		delete(c.unlisted, plan.KeyOf(item))
	}
	return c
}

func (c *call) addNote(note plan.Note) {
	if !c.noted[note] {
		c.noted[note] = true
		c.notes = append(c.notes, note)
	}
}

// fold adds the results of a plan's steps to the input and returns the objects that
// must be read again before the next plan.
func (c *call) fold(p plan.Plan, results []plan.Result, now metav1.Time) (again []plan.Key) {
	blind := c.unread(results)
	c.in.Recorded = plan.Fold(p.Inventory, c.in.Live, results, now)
	for i, item := range c.in.Recorded {
		if key := plan.KeyOf(item); blind[key] && c.unlisted[key] {
			c.in.Recorded[i].Intended = "" // it was there already, and nothing is known about its manifest
		}
	}
	for _, result := range results {
		key := result.Step.Key
		if _, superseded := errors.AsType[*SupersededError](result.Err); superseded {
			continue // it ends the call, and is not about the object
		}
		for _, note := range result.Notes {
			c.addNote(note)
		}
		c.addRefusal(result.Step, result.Err)
		switch {
		case result.Blocked != "":
			c.in.Failed[key] = plan.Failure{Blocked: true, Message: result.Blocked, BlockingTypes: result.BlockingTypes}
		case result.Err == nil:
			c.countStep(result)
			continue
		case execute.IsConflict(result.Err) && c.looks[key] < maxLooks:
			c.looks[key]++
		case blind[key] && !execute.IsUnavailable(result.Err):
			// AlreadyExists is not the only reason to refuse the creation of an existing object: a
			// port may be taken by the object itself. An overloaded server has not looked yet.
		case execute.IsNamespaceGone(result.Err) && c.looks[key] < maxLooks:
			// The namespace is not as it was seen, so the plan will be another.
			c.looks[key]++
			again = append(again, plan.Key{Kind: "Namespace", Name: key.Namespace})
		default:
			c.noteFailure(key, result.Err)
			c.blameNamespace(key, result.Err)
		}
		again = append(again, key)
	}
	if slices.ContainsFunc(results, func(result plan.Result) bool { return c.in.Failed[result.Step.Key].Webhook != "" }) {
		for _, item := range c.in.Recorded { // the webhook may be one of ours, and the watches keep no names of webhooks
			if key := plan.KeyOf(item); plan.IsWebhookConfiguration(key.GroupKind()) && c.in.Live[key].Webhooks == nil {
				again = append(again, key)
			}
		}
	}
	if slices.ContainsFunc(results, func(result plan.Result) bool { return result.Observation.Existence == plan.Absent }) {
		for _, item := range c.in.Recorded { // its other users may have left it meanwhile
			if plan.MayBeShared(item) && !plan.IsSharedNamespace(c.in.Input, item) {
				again = append(again, plan.KeyOf(item))
			}
		}
	}
	c.retried = c.retried || plan.DropResolvedFailures(c.in.Input, results)
	return again
}

func (c *call) noteFailure(key plan.Key, err error) {
	c.in.Failed[key], c.errs[key] = execute.FailureOf(err), err
	if execute.ClassOf(err) == execute.Breaking {
		c.errs[key] = &BreakingChangeError{Err: err}
	}
	if execute.IsMistake(err) {
		c.errs[key] = &InvalidError{Err: err}
	}
	c.unavailable = c.unavailable || execute.IsUnavailable(err)
}

// addRefusal notes the right that the server names if it has forbidden a step.
func (c *call) addRefusal(step plan.Step, err error) {
	if !execute.IsForbidden(err) {
		return
	}
	var manifest *unstructured.Unstructured
	if step.Desired != nil {
		manifest = step.Desired.Unpacked().Manifest
	}
	if right, ok := rights.Refused(execute.AnswerOf(err), manifest); ok {
		c.missing = append(c.missing, right)
	}
}

// addForbiddenRead notes the right that the server names if an object waits because it may not be read.
func (c *call) addForbiddenRead(wait plan.Wait) {
	if right, ok := rights.Refused(wait.Message, nil); ok && wait.Reason == report.WaitForbidden {
		c.missing = append(c.missing, right)
	}
}

// blameNamespace replaces the failure of an object by one of its namespace, which does not
// exist, and may not be read, so that it was not seen to be missing. That is one failure,
// however many objects it concerns.
func (c *call) blameNamespace(key plan.Key, err error) {
	namespace := plan.Key{Kind: "Namespace", Name: key.Namespace}
	seen, creates := c.in.Live[namespace], c.in.MissingNamespaces == v1alpha1.MissingNamespacesPolicyCreate
	if !creates || !seen.Forbidden || !execute.IsNamespaceGone(err) || !apierrors.IsNotFound(err) {
		return
	}
	delete(c.errs, key)
	c.addForbiddenRead(plan.Wait{Reason: report.WaitForbidden, Message: seen.Message})
	c.errs[namespace] = &ForbiddenError{Object: namespace.String(), Message: "does not exist, and is not created, because it " + seen.Message}
}

// unread returns the objects among the results that were written without a read.
func (c *call) unread(results []plan.Result) map[plan.Key]bool {
	blind := map[plan.Key]bool{}
	for _, result := range results {
		if key := result.Step.Key; c.in.Live[key].Existence == plan.NotFetched {
			blind[key] = true
			if result.Err == nil {
				delete(c.unlisted, key) // it was created
			}
		}
	}
	return blind
}

// countStep counts a step that succeeded. An object that is written too often fails for the
// rest of this call.
func (c *call) countStep(result plan.Result) {
	key, verb := result.Step.Key, string(result.Step.Verb)
	if result.Step.Verb == plan.VerbDryRun {
		c.in.DryRunAccepted[key] = true
		return // nothing was written
	}
	c.noteStep(result.Step)
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

func (c *call) failures() error {
	failed := slices.SortedFunc(maps.Keys(c.errs), plan.Key.Compare)
	errs := make([]error, 0, len(failed))
	for _, key := range failed {
		errs = append(errs, c.errs[key])
	}
	return errors.Join(errs...)
}

// inventory returns the record with these items. Fields that a newer version wrote into the record
// stay until the last item is gone.
func (c *call) inventory(items []v1alpha1.InventoryItem) v1alpha1.Inventory {
	if len(items) == 0 && !c.in.hooks {
		return v1alpha1.Inventory{}
	}
	return v1alpha1.Inventory{
		Format: v1alpha1.InventoryFormat, Target: c.in.target, Items: items, DeleteHooks: c.in.hooks, Unknown: c.in.unknown,
	}
}

// outcome returns the Outcome of the call. Conflicts of ownership are errors: only a
// person can decide which owner is right.
func (c *call) outcome(p plan.Plan) Outcome {
	outcome := Outcome{
		Inventory:      c.inventory(c.in.Recorded),
		OwnerID:        c.in.Owner.ID,
		Waiting:        p.Waiting,
		Awaited:        c.awaited(p),
		Drifted:        p.Deviations,
		Retained:       p.Retained,
		Notes:          c.notes,
		Settled:        p.Settled + len(p.Ignored),
		Total:          p.Total + len(p.Ignored),
		Ignored:        len(p.Ignored),
		ManifestDigest: c.in.manifest,
		Steps:          c.steps,
	}
	if c.in.Cause == plan.Deleting {
		// Removed objects are not part of the plan any more.
		outcome.Settled, outcome.Total, outcome.Ignored = max(c.recorded-len(c.in.Recorded), 0), c.recorded, 0
	}
	adoption := adoptionOf(c.in.Input)
	for _, wait := range p.Waiting {
		if err := c.errs[wait.Key]; err != nil && wait.Reason == report.WaitError {
			if advice, ok := strings.CutPrefix(wait.Message, err.Error()); ok && advice != "" {
				c.errs[wait.Key] = fmt.Errorf("%w%s", err, advice)
			}
		}
		if wait.Reason == report.WaitFailed && c.in.Cause == plan.Deleting {
			c.errs[wait.Key] = &HookFailedError{Object: wait.Key.String(), Message: wait.Message}
		}
		if wait.Reason == report.WaitForbidden {
			c.addForbiddenRead(wait)
			c.errs[wait.Key] = &ForbiddenError{Object: wait.Key.String(), Message: wait.Message}
		}
		if wait.Reason == report.WaitOwner {
			c.errs[wait.Key] = &OwnerConflictError{Object: wait.Key.String(), Message: wait.Message, Policy: adoption()[wait.Key]}
		}
	}
	outcome.Missing = rights.Aggregate(c.missing)
	return outcome
}

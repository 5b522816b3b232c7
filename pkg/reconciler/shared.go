// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/shared"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/types"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// lookEvery is how long an observation of a shared type holds if no watch shows its changes: it
// belongs to another owner, or may not be watched.
//
// Limit: the time after which a change of a shared type is noticed without a watch.
const lookEvery = 10 * time.Minute

// sharedTypes are the types that all owners share, and their state in the target. It only saves
// requests.
type sharedTypes struct {
	byName map[string]*sharedType
	// objects are the definitions in the form in which objects are compared with them. They are made when they are needed.
	objects func() map[string]*desired.SharedType
	store   *watch.Store // nil if nothing is watched
	mu      sync.Mutex
	place   watch.Place // of definitions; zero before they are watched
}

// sharedType is the state of one type. Calls that need the same type wait for each other, so that
// one request serves them all.
type sharedType struct {
	types.SharedType
	mu sync.Mutex
	// hashes are the hashes of contents, by the digest of the object.
	hashes map[string]string
	// live was last read or answered at the time at, for the mark want. If known is set, nothing
	// was to be done.
	live  plan.Observation
	at    time.Time
	want  shared.Mark
	known bool
	// accepted is the AppliedHash of the last write of this process, and wrote are the hashes of the contents that it wrote.
	accepted string
	wrote    map[string]bool
	// note explains why it is used as it is; it was reported.
	note string
}

func newSharedTypes(r *Reconciler) *sharedTypes {
	s := &sharedTypes{byName: map[string]*sharedType{}}
	for _, t := range r.settings.SharedTypes {
		s.byName[t.Name] = &sharedType{SharedType: t, hashes: map[string]string{}, wrote: map[string]bool{}}
	}
	s.objects = sync.OnceValue(func() map[string]*desired.SharedType {
		objects := make(map[string]*desired.SharedType, len(s.byName))
		for name, t := range s.byName {
			objects[name] = desired.NewSharedType(r.name, t.Definition, r.settings.hasher)
		}
		return objects
	})
	if r.settings.Changed != nil && len(s.byName) > 0 {
		s.store = watch.New(r.target, watch.Options{Label: r.name + "/" + vocabulary.LabelShared, Changed: r.onSharedChange, Reduce: func(live *unstructured.Unstructured) plan.Observation {
			return seen(r.observer.Reduce(live))
		}})
	}
	return s
}

// sharedOwner is the value of the label of shared types. The store uses it as the id of their owner.
const sharedOwner = "true"

// sharedRef is the owner of shared types in the history of repairs.
var sharedRef = plan.OwnerRef{Kind: sharedOwner}

// seen is an observation as the store keeps it.
func seen(live plan.Observation) plan.Observation {
	if live.Ownership = (plan.Ownership{}); live.Shared != "" {
		live.Ownership.OwnerID = sharedOwner
	}
	return live
}

func (s *sharedTypes) close() {
	if s.store != nil {
		s.store.Close()
	}
}

// placeOf starts the watch of definitions, unless it runs, and returns its place.
func (s *sharedTypes) placeOf(ctx context.Context, r *Reconciler) (watch.Place, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.store == nil || s.place.Resource.Kind != "" {
		return s.place, s.store != nil
	}
	resource, err := r.target.Types().Resolve(ctx, definitionKind.WithVersion("v1"))
	if err != nil {
		return s.place, false
	}
	s.place = watch.Place{Resource: resource}
	s.store.Keep(sharedOwner, []watch.Place{s.place})
	return s.place, true
}

// maxRequeued is how many owners are requeued if a shared type was changed. One of them is enough to repair it.
const maxRequeued = 3

// onSharedChange requeues owners that need a shared type. If it became ready, or is gone, all of them may wait for it.
func (r *Reconciler) onSharedChange(change watch.Change) {
	limit := math.MaxInt
	if change.Edited {
		limit = maxRequeued
	}
	for _, owner := range r.watched.users(change.Key, limit) {
		r.settings.Changed(owner, Change{Key: change.Key, What: Event(change.What)})
	}
}

func (s *sharedTypes) isShared(key plan.Key) bool {
	return key.GroupKind() == definitionKind && s.byName[key.Name] != nil
}

// released returns the items, with the policy to orphan for shared types: a former version has
// recorded them, and the label and the annotation of the owner are removed from the types that it
// does not need any more.
func (s *sharedTypes) released(items []v1alpha1.InventoryItem) []v1alpha1.InventoryItem {
	isShared := func(item v1alpha1.InventoryItem) bool { return s.isShared(plan.KeyOf(item)) }
	if !slices.ContainsFunc(items, isShared) {
		return items
	}
	items = slices.Clone(items)
	for i := range items {
		if isShared(items[i]) {
			items[i].DeletePolicy = v1alpha1.DeletePolicyOrphan
		}
	}
	return items
}

// defined are the types that the shared definitions define, as far as their content is known.
func (s *sharedTypes) defined() (defined []v1alpha1.TypeInfo) {
	for _, t := range s.byName {
		if t.Definition != nil {
			group, _, _ := unstructured.NestedString(t.Definition.Object, "spec", "group")
			kind, _, _ := unstructured.NestedString(t.Definition.Object, "spec", "names", "kind")
			defined = append(defined, v1alpha1.TypeInfo{Group: group, Kind: kind})
		}
	}
	return defined
}

func sharedKeys(in plan.Input) (keys []plan.Key) {
	for _, d := range in.Desired {
		if d.Shared {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// sharedNeed is a shared type that a call needs, with its next step.
type sharedNeed struct {
	*sharedType
	desired *plan.Desired
	// writable: the content is known.
	writable bool
	found    plan.Observation
	// step is the write to be done; its verb is empty if there is none. Then why explains why the
	// type is used as it is.
	step plan.Step
	why  string
}

// ensureShared creates and changes the shared types that the call needs, and adds to its input how they are. It returns an error only at
// the end of the context, or if this process may not write any more.
func (r *Reconciler) ensureShared(ctx context.Context, c *call) error {
	keys := sharedKeys(c.in.Input)
	if len(keys) == 0 || c.in.Cause != plan.Applying {
		return nil
	}
	if r.settings.Changed != nil {
		r.watched.set(c.in.Owner.ID, c.in.Owner.Ref, slices.Concat(keysOf(c.in.Input), keys))
	}
	var needs []*sharedNeed
	for i := range c.in.Desired {
		d := &c.in.Desired[i]
		if !d.Shared {
			continue
		}
		t := r.shared.byName[d.Key.Name]
		t.mu.Lock() // all calls lock the types in the order of their names
		defer t.mu.Unlock()
		want, writable := t.mark(r, c, d)
		unanswered := t.live.Existence == plan.Unknown && !t.live.Forbidden
		justFailed := unanswered && r.settings.Now().Sub(t.at) < time.Second // while this call waited for another one
		if want == t.want && (justFailed || t.isCurrent(ctx, r, d)) {
			c.in.Live[d.Key] = t.live
			continue
		}
		t.want, t.known = want, false
		needs = append(needs, &sharedNeed{sharedType: t, desired: d, writable: writable})
	}
	for len(needs) > 0 {
		var err error
		if needs, err = r.attemptShared(ctx, c, needs); err != nil {
			return err
		}
	}
	return nil
}

// attemptShared looks at the types, and writes those for which that is due. It returns those for which that has to be done again.
func (r *Reconciler) attemptShared(ctx context.Context, c *call, needs []*sharedNeed) (again []*sharedNeed, err error) {
	if err := r.decideShared(ctx, c, r.observer, needs); err != nil {
		return nil, err
	}
	place, watched := r.shared.placeOf(ctx, r)
	var steps []plan.Step
	written := map[plan.Key]*sharedNeed{}
	answered := map[plan.Key]func(*plan.Observation){}
	for _, n := range needs {
		if n.step.Verb != "" {
			steps, written[n.step.Key] = append(steps, n.step), n
			continue
		}
		if watched {
			r.shared.store.Read(sharedOwner, place, n.Name, seen(n.found))
		}
		n.use(c, n.desired.Key, n.found, n.why, r.settings.Now())
	}
	if len(steps) == 0 {
		return nil, nil
	}
	if watched {
		for key, n := range written {
			answered[key] = r.shared.store.Writing(sharedOwner, place, n.Name)
		}
	}
	results := r.executor.Run(ctx, steps)
	for _, result := range results {
		if done := answered[result.Step.Key]; done != nil && result.Err == nil {
			answer := seen(result.Observation)
			done(&answer)
		}
	}
	for _, done := range answered {
		done(nil) // unless it was called
	}
	if err := errors.Join(ctx.Err(), c.in.confirmation.failure()); err != nil {
		return nil, err
	}
	for _, result := range results {
		if n := written[result.Step.Key]; n.fold(ctx, r, c, result) {
			again = append(again, n)
		}
	}
	return again, nil
}

// foresee adds the future state of the types to the input of a plan, and notes what an apply would
// do first.
func (p *previewing) foresee(ctx context.Context) error {
	r, c := p.reconciler, p.call
	if c.in.Cause != plan.Applying {
		return nil
	}
	var needs []*sharedNeed
	for i := range c.in.Desired {
		if d := &c.in.Desired[i]; d.Shared {
			n := &sharedNeed{sharedType: r.shared.byName[d.Key.Name].copied(), desired: d}
			n.want, n.writable = n.mark(r, c, d)
			needs = append(needs, n)
		}
	}
	if err := r.decideShared(ctx, c, p.observer, needs); err != nil {
		return err
	}
	var steps []plan.Step
	written := map[plan.Key]*sharedNeed{}
	for _, n := range needs {
		if c.in.Live[n.desired.Key] = n.found; n.step.Verb != "" {
			steps, written[n.step.Key] = append(steps, n.step), n
		}
	}
	for _, asked := range p.preview.Ask(ctx, steps, nil) {
		step, n := asked.Result.Step, written[asked.Result.Step.Key]
		c.in.Live[step.Key] = served
		switch err := asked.Result.Err; {
		case err == nil:
			n.why = "is created"
			if step.Verb == plan.VerbReplace {
				n.why = "is changed (" + string(step.Reason) + ")"
			}
			n.why += " by the first component that is reconciled, without approval or turn: all components share it"
		case n.isUsable(ctx, r, c, n.desired, n.found, err):
			n.why = usedAsItIs(err)
		default:
			c.noteFailure(step.Key, err)
			p.refused = append(p.refused, report.PlannedChange{
				Key: step.Key, APIVersion: step.Key.GroupKind().WithVersion(step.Version).GroupVersion().String(), Class: report.ChangeRefused, Verb: string(step.Verb),
				Reason: string(step.Reason), Message: err.Error(),
			})
		}
	}
	for _, n := range needs {
		if n.why != "" {
			c.addNote(plan.Note{Key: n.desired.Key, Message: n.why})
		}
	}
	return nil
}

// copied returns the state of the type, for a plan.
func (t *sharedType) copied() *sharedType {
	t.mu.Lock()
	defer t.mu.Unlock()
	return &sharedType{SharedType: t.SharedType, hashes: map[string]string{}, want: t.want, accepted: t.accepted, wrote: maps.Clone(t.wrote)}
}

// mark returns the mark for the next write. It is not writable if the content is not known.
func (t *sharedType) mark(r *Reconciler, c *call, d *plan.Desired) (want shared.Mark, writable bool) {
	hash := r.shared.objects()[t.Name].Hash
	if hash == "" && c.in.stored {
		return t.want, false
	}
	if hash == "" { // each component renders it
		if t.hashes[d.Digest] == "" {
			t.hashes[d.Digest] = digest.Hasher{}.Manifest(d.Unpacked().Manifest.Object)
		}
		hash = t.hashes[d.Digest]
	}
	return shared.Mark{Hash: hash, Version: t.Version}, true
}

// isCurrent reports whether the type need not be read. The watch shows whether it is ready.
func (t *sharedType) isCurrent(ctx context.Context, r *Reconciler, d *plan.Desired) bool {
	place, watched := r.shared.placeOf(ctx, r)
	if !t.known || !watched {
		return false
	}
	recent := r.settings.Now().Sub(t.at) < lookEvery
	live, known, watched := r.shared.store.Look(place, t.Name)
	switch {
	case t.live.Shared == "" || !watched: // the watch does not show it
		return recent && t.live.Status.Readiness == plan.Ready && r.serves(ctx, d)
	case t.note != "" && !recent, !known, live.UID != t.live.UID, live.ObservedHash != t.live.ObservedHash, !live.DeletionTimestamp.IsZero():
		return false
	}
	t.live.Status = live.Status
	return true
}

// decideShared observes the types, and sets the step that is due for each, or how it is used and why.
func (r *Reconciler) decideShared(ctx context.Context, c *call, by *observe.Observer, needs []*sharedNeed) error {
	requests := make([]observe.Request, len(needs))
	for i, n := range needs {
		requests[i] = observe.Request{Key: n.desired.Key, Version: n.desired.Version, Desired: n.manifest(r), ForceRead: true}
		if n.writable {
			// A definition that this process has not written may have changed while no process ran.
			requests[i].Recorded = &v1alpha1.InventoryItem{Digest: n.desired.Digest, AppliedHash: cmp.Or(n.accepted, "unknown")}
		}
	}
	observed, err := by.Observe(ctx, requests)
	if err != nil {
		return err
	}
	conflicts := r.history.conflicts(sharedRef, r.settings.Now())
	for i, n := range needs {
		_, contested := conflicts[n.desired.Key]
		n.decide(ctx, r, c, observed[n.desired.Key], requests[i].Desired, contested)
	}
	return nil
}

// decide sets the step that is due for a type that was seen as live, or how it is used and why.
func (n *sharedNeed) decide(ctx context.Context, r *Reconciler, c *call, live plan.Observation, manifest *plan.Desired, contested bool) {
	// A stored set does not tell whether its component has made the definition its own.
	own := c.in.stored && live.Shared == "" && c.in.Owner.Owns(live.Ownership)
	decision := shared.Decide(shared.Input{
		Live: live, Want: n.want, Once: own || n.desired.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce, ReadOnly: !n.writable,
		Served: live.Forbidden && r.serves(ctx, n.desired), Written: n.wrote[n.want.Hash], Drifted: live.Drift != nil && len(live.Drift.Fields) > 0,
	})
	switch {
	case contested && decision.Verb == plan.VerbReplace && decision.Reason != plan.ReasonManifestChanged:
		decision.Verb, decision.Note = "", "is used as it is for now: another client changes it again and again"
	case decision.Used:
		live = served
	case decision.Missing:
		live = plan.Observation{Message: "does not exist, and the stored objects of this component do not say how to create it"}
	}
	n.found, n.why = live, decision.Note
	n.step = plan.Step{
		Verb: decision.Verb, Key: n.desired.Key, Version: n.desired.Version, Reason: decision.Reason, Desired: manifest, UID: live.UID, ResourceVersion: live.ResourceVersion,
		Ownership: live.Ownership, Finalizers: live.Finalizers, HasOwnerReferences: live.HasOwnerReferences, Carried: live.Carried, Drift: live.Drift,
	}
}

// served is a definition that may not be read, or not be created, and the type of which is served.
var served = plan.Observation{Existence: plan.Present, Status: plan.Status{Readiness: plan.Ready}}

// manifest returns the object to send, with our label and annotation; without a manifest if that is not known.
func (n *sharedNeed) manifest(r *Reconciler) *plan.Desired {
	wanted := *n.desired.Unpacked()
	wanted.Policies.Update, wanted.Policies.Adoption, wanted.Policies.AdoptFrom = v1alpha1.UpdatePolicyReplace, v1alpha1.AdoptionPolicyIfUnowned, nil
	if !n.writable {
		wanted.Manifest, wanted.Packed = nil, nil
		return &wanted
	}
	if manifest := r.shared.objects()[n.Name].Manifest(); manifest != nil {
		wanted.Manifest = manifest
	} else {
		wanted.Manifest = wanted.Manifest.DeepCopy()
	}
	desired.SetShared(wanted.Manifest.Object, r.name, n.want.String())
	return &wanted
}

// fold adds the result of the step to the call. It reports whether the type has to be looked at again.
func (n *sharedNeed) fold(ctx context.Context, r *Reconciler, c *call, result plan.Result) (again bool) {
	key, now := n.desired.Key, r.settings.Now()
	for _, note := range result.Notes {
		c.addNote(note)
	}
	switch err := result.Err; {
	case err == nil:
		if n.step.Verb == plan.VerbReplace && n.step.Reason != plan.ReasonManifestChanged {
			r.history.add(sharedRef, key, report.Drift{}, now)
		}
		n.accepted, n.wrote[n.want.Hash] = result.Observation.AppliedHash, true
		if c.steps[string(n.step.Verb)]++; n.step.Reason == plan.ReasonAdopted {
			c.addNote(plan.Note{Key: key, Reason: report.NoteAdopted, Message: "adopted: all components of this operator share it"})
		}
		if n.step.Reason == plan.ReasonDrifted && result.Observation.ResourceVersion != n.found.ResourceVersion { // it may have a field that the server drops
			c.addNote(plan.Note{Key: key, Reason: report.NoteDriftRepaired, Message: "drift repaired: " + n.step.Drift.String()})
		}
		n.use(c, key, result.Observation, "", now)
	case execute.IsConflict(err) && c.looks[key] < maxLooks:
		c.looks[key]++
		return true
	case n.isUsable(ctx, r, c, n.desired, n.found, err):
		if n.found.Existence != plan.Present {
			n.found = served
		}
		n.use(c, key, n.found, usedAsItIs(err), now)
		n.known = n.known && execute.IsForbidden(err) // otherwise a component that needs the other content looks at it again
	default:
		c.in.Live[key] = n.found
		c.addRefusal(n.step, err)
		c.noteFailure(key, err)
	}
	return false
}

// isUsable reports whether the type is used although its definition could not be written: the identity may not do so, or the objects of a
// stored set were made with the live one.
func (t *sharedType) isUsable(ctx context.Context, r *Reconciler, c *call, d *plan.Desired, live plan.Observation, err error) bool {
	return execute.IsForbidden(err) && r.serves(ctx, d) || c.in.stored && live.Existence == plan.Present && !execute.IsUnavailable(err)
}

func usedAsItIs(err error) string { return "is used as it is: " + err.Error() }

// use makes the type an object of the call, as it was found. A note is reported once.
func (t *sharedType) use(c *call, key plan.Key, live plan.Observation, note string, now time.Time) {
	c.in.Live[key] = live
	t.live, t.at, t.known = live, now, live.Existence == plan.Present && live.DeletionTimestamp.IsZero()
	if note != "" && note != t.note {
		c.addNote(plan.Note{Key: key, Message: note})
	}
	t.note = note
}

// serves reports whether the target serves one of the types that an object defines.
func (r *Reconciler) serves(ctx context.Context, d *plan.Desired) bool {
	return slices.ContainsFunc(d.Defines, func(defined v1alpha1.TypeInfo) bool {
		_, err := r.target.Types().ResolveAny(ctx, schema.GroupKind{Group: defined.Group, Kind: defined.Kind}, "")
		return err == nil
	})
}

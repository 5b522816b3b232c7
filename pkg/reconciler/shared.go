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
	"github.com/corbel-run/corbel/pkg/reconciler/internal/desired"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/shared"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/types"
)

var definitionKind = schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}

// lookEvery is how long what was read of a shared type holds if no watch shows its changes: it belongs to another owner, or may not
// be watched.
//
// Limit: the time after which a change of a shared type is noticed that another owner has, or that may not be watched.
const lookEvery = 10 * time.Minute

// sharedTypes are the types that all owners share, and what is known of them in the target. It only saves requests.
type sharedTypes struct {
	byName map[string]*sharedType
	// objects are the definitions in the form in which objects are compared with them. They are made when they are needed.
	objects func() map[string]*desired.SharedType
	store   *watch.Store // nil if nothing is watched
	mu      sync.Mutex
	place   watch.Place // of definitions; zero before they are watched
}

// sharedType is what is known of one type. Calls that need the same type wait for each other, so that one request serves them all.
type sharedType struct {
	types.SharedType
	mu sync.Mutex
	// hashes are the hashes of contents, by the digest of the object.
	hashes map[string]string
	// live is what was last read or answered, at a time, for the mark that was wanted. There was nothing to do if it is known.
	live  plan.Observation
	at    time.Time
	want  shared.Mark
	known bool
	// accepted is the AppliedHash of the last write of this process, and wrote are the hashes of the contents that it wrote.
	accepted string
	wrote    map[string]bool
	// note says why it is used as it is; it was reported.
	note string
}

func newSharedTypes(r *Reconciler) *sharedTypes {
	s := &sharedTypes{byName: map[string]*sharedType{}}
	for _, t := range r.settings.sharedTypes {
		s.byName[t.Name] = &sharedType{SharedType: t, hashes: map[string]string{}, wrote: map[string]bool{}}
	}
	s.objects = sync.OnceValue(func() map[string]*desired.SharedType {
		objects := make(map[string]*desired.SharedType, len(s.byName))
		for name, t := range s.byName {
			objects[name] = desired.NewSharedType(r.name, t.Definition, r.settings.hasher)
		}
		return objects
	})
	if r.settings.changed != nil && len(s.byName) > 0 {
		s.store = watch.New(r.target, watch.Options{Label: r.name + "/" + v1alpha1.LabelShared, Changed: r.onSharedChange, Reduce: func(live *unstructured.Unstructured) plan.Observation {
			return seen(r.observer.Reduce(live))
		}})
	}
	return s
}

// sharedOwner is the value of the label of shared types, by which the store knows them, and sharedRef stands for all owners among those
// whose objects are repaired.
const sharedOwner = "true"

var sharedRef = plan.OwnerRef{Kind: sharedOwner}

// seen is an observation as the store keeps it.
func seen(live plan.Observation) plan.Observation {
	if live.Ownership = (plan.Ownership{}); live.Shared != "" {
		live.Ownership.OwnerID = sharedOwner
	}
	return live
}

// close ends the watch.
func (s *sharedTypes) close() {
	if s.store != nil {
		s.store.Close()
	}
}

// placeOf starts the watch of definitions, unless it runs, and returns what it is about.
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
		r.settings.changed(owner, Change{Key: Key(change.Key), What: events[change.What]})
	}
}

// isShared reports whether the object is the definition of a shared type.
func (s *sharedTypes) isShared(key plan.Key) bool {
	return key.GroupKind() == definitionKind && s.byName[key.Name] != nil
}

// released returns the items with the policy to orphan those that are shared types: a former version has recorded them, and the label
// and the annotation of the owner are removed from those that it does not need any more.
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

// sharedKeys returns the shared types that are desired.
func sharedKeys(in plan.Input) (keys []plan.Key) {
	for _, d := range in.Desired {
		if d.Shared {
			keys = append(keys, d.Key)
		}
	}
	return keys
}

// ensureShared creates and changes the shared types that the call needs, and adds to its input how they are. It returns an error only at
// the end of the context, or if this process may not write any more.
func (r *Reconciler) ensureShared(ctx context.Context, c *call) error {
	keys := sharedKeys(c.in.Input)
	if len(keys) == 0 || c.in.Cause != plan.Applying {
		return nil
	}
	if r.settings.changed != nil {
		r.watched.set(c.in.Owner.ID, c.in.Owner.Ref, slices.Concat(keysOf(c.in.Input), keys))
	}
	for i := range c.in.Desired {
		if d := &c.in.Desired[i]; d.Shared {
			if err := r.shared.byName[d.Key.Name].ensure(ctx, r, c, d); err != nil {
				return err
			}
			if isUnanswered(c.in.Live[d.Key]) {
				return nil // each other request would wait for its own timeout
			}
		}
	}
	return nil
}

// isUnanswered reports whether the server did not answer.
func isUnanswered(live plan.Observation) bool {
	return live.Existence == plan.Unknown && !live.Forbidden
}

// ensure does so for one type.
func (t *sharedType) ensure(ctx context.Context, r *Reconciler, c *call, d *plan.Desired) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	want, writable := t.mark(r, c, d)
	justFailed := isUnanswered(t.live) && r.settings.now().Sub(t.at) < time.Second // while this call waited for another one
	if want == t.want && (justFailed || t.isCurrent(ctx, r, d)) {
		c.in.Live[d.Key] = t.live
		return nil
	}
	t.want, t.known = want, false
	for again := true; again; {
		var err error
		if again, err = t.attempt(ctx, r, c, d, writable); err != nil {
			return err
		}
	}
	return nil
}

// foresee adds to the input of a plan how the types will be, and notes what an apply would do first.
func (p *previewing) foresee(ctx context.Context) error {
	r, c := p.reconciler, p.call
	for i := range c.in.Desired {
		d := &c.in.Desired[i]
		if !d.Shared || c.in.Cause != plan.Applying {
			continue
		}
		real := r.shared.byName[d.Key.Name]
		real.mu.Lock()
		t := &sharedType{SharedType: real.SharedType, hashes: map[string]string{}, want: real.want, accepted: real.accepted, wrote: maps.Clone(real.wrote)}
		real.mu.Unlock()
		var writable bool
		t.want, writable = t.mark(r, c, d)
		step, live, note, err := t.decide(ctx, r, c, p.observer, d, writable)
		if err != nil {
			return err
		}
		if step.Verb != "" {
			written, before := "created", live
			if step.Verb == plan.VerbReplace {
				written = "changed (" + string(step.Reason) + ")"
			}
			note, live = "is "+written+" by the first component that is reconciled, without approval or turn: all components share it", served
			for _, asked := range p.preview.Ask(ctx, []plan.Step{step}, nil) {
				switch err := asked.Result.Err; {
				case err == nil:
				case t.isUsable(ctx, r, c, d, before, err):
					note = usedAsItIs(err)
				default:
					note = ""
					c.noteFailure(d.Key, err)
					p.refused = append(p.refused, PlannedChange{
						Key: Key(d.Key), APIVersion: d.Key.GroupKind().WithVersion(d.Version).GroupVersion().String(), Class: ChangeRefused, Verb: string(step.Verb),
						Reason: string(step.Reason), Message: err.Error(),
					})
				}
			}
		}
		if c.in.Live[d.Key] = live; note != "" {
			c.addNote(plan.Note{Key: d.Key, Message: note})
		}
	}
	return nil
}

// mark returns the mark of what is to be written. It is not writable if the content is not known.
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
	recent := r.settings.now().Sub(t.at) < lookEvery
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

// attempt looks at the type, and writes it if that is due. It reports whether that has to be done again.
func (t *sharedType) attempt(ctx context.Context, r *Reconciler, c *call, d *plan.Desired, writable bool) (again bool, err error) {
	step, live, note, err := t.decide(ctx, r, c, r.observer, d, writable)
	if err != nil {
		return false, err
	}
	if step.Verb != "" {
		return t.write(ctx, r, c, d, step, live)
	}
	if place, watched := r.shared.placeOf(ctx, r); watched {
		r.shared.store.Read(sharedOwner, place, t.Name, seen(live))
	}
	t.use(c, d.Key, live, note, r.settings.now())
	return false, nil
}

// decide observes the type, and returns the step that is due, or how the type is used and why.
func (t *sharedType) decide(ctx context.Context, r *Reconciler, c *call, by *observe.Observer, d *plan.Desired, writable bool) (step plan.Step, live plan.Observation, note string, err error) {
	request := observe.Request{Key: d.Key, Version: d.Version, Desired: t.desired(r, d, writable), ForceRead: true}
	if writable {
		// What this process has not written may have changed while no process ran.
		request.Recorded = &v1alpha1.InventoryItem{Digest: d.Digest, AppliedHash: cmp.Or(t.accepted, "unknown")}
	}
	observed, err := by.Observe(ctx, []observe.Request{request})
	if err != nil {
		return step, live, "", err
	}
	live = observed[d.Key]
	// A stored set does not say whether its component has made the definition its own.
	own := c.in.stored && live.Shared == "" && c.in.Owner.Owns(live.Ownership)
	decision := shared.Decide(shared.Input{
		Live: live, Want: t.want, Once: own || d.Policies.Reconcile == v1alpha1.ReconcilePolicyOnce, ReadOnly: !writable,
		Served: live.Forbidden && r.serves(ctx, d), Written: t.wrote[t.want.Hash], Drifted: live.Drift != nil && len(live.Drift.Fields) > 0,
	})
	_, contested := r.history.conflicts(sharedRef, r.settings.now())[d.Key]
	switch {
	case contested && decision.Verb == plan.VerbReplace && decision.Reason != plan.ReasonManifestChanged:
		decision.Verb, decision.Note = "", "is used as it is for now: another client changes it again and again"
	case decision.Used:
		live = served
	case decision.Missing:
		live = plan.Observation{Message: "does not exist, and the stored objects of this component do not say how to create it"}
	}
	return plan.Step{
		Verb: decision.Verb, Key: d.Key, Version: d.Version, Reason: decision.Reason, Desired: request.Desired, UID: live.UID, ResourceVersion: live.ResourceVersion,
		Ownership: live.Ownership, Finalizers: live.Finalizers, HasOwnerReferences: live.HasOwnerReferences, Carried: live.Carried, Drift: live.Drift,
	}, live, decision.Note, nil
}

// served is a definition that may not be read, or not be created, and the type of which is served.
var served = plan.Observation{Existence: plan.Present, Status: plan.Status{Readiness: plan.Ready}}

// desired returns the object to send, with our label and annotation; without a manifest if that is not known.
func (t *sharedType) desired(r *Reconciler, d *plan.Desired, writable bool) *plan.Desired {
	wanted := *d.Unpacked()
	wanted.Policies.Update, wanted.Policies.Adoption, wanted.Policies.AdoptFrom = v1alpha1.UpdatePolicyReplace, v1alpha1.AdoptionPolicyIfUnowned, nil
	if !writable {
		wanted.Manifest, wanted.Packed = nil, nil
		return &wanted
	}
	if manifest := r.shared.objects()[t.Name].Manifest(); manifest != nil {
		wanted.Manifest = manifest
	} else {
		wanted.Manifest = wanted.Manifest.DeepCopy()
	}
	desired.SetShared(wanted.Manifest.Object, r.name, t.want.String())
	return &wanted
}

// write sends a step about the type, which was seen as live.
func (t *sharedType) write(ctx context.Context, r *Reconciler, c *call, d *plan.Desired, step plan.Step, live plan.Observation) (again bool, err error) {
	if err := c.in.confirmation.confirmStale(ctx); err != nil {
		return false, err
	}
	answered := func(*plan.Observation) {}
	if place, watched := r.shared.placeOf(ctx, r); watched {
		answered = r.shared.store.Writing(sharedOwner, place, t.Name)
	}
	results := r.executor.Run(ctx, []plan.Step{step})
	if len(results) == 1 && results[0].Err == nil {
		answer := seen(results[0].Observation)
		answered(&answer)
	} else {
		answered(nil)
	}
	if err := errors.Join(ctx.Err(), c.in.confirmation.failure()); err != nil || len(results) == 0 {
		return false, err
	}
	result, now := results[0], r.settings.now()
	for _, note := range result.Notes {
		c.addNote(note)
	}
	switch err := result.Err; {
	case err == nil:
		if step.Verb == plan.VerbReplace && step.Reason != plan.ReasonManifestChanged {
			r.history.add(sharedRef, d.Key, plan.Drift{}, now)
		}
		t.accepted, t.wrote[t.want.Hash] = result.Observation.AppliedHash, true
		if c.steps[string(step.Verb)]++; step.Reason == plan.ReasonAdopted {
			c.addNote(plan.Note{Key: d.Key, Reason: plan.NoteAdopted, Message: "adopted: all components of this operator share it"})
		}
		if step.Reason == plan.ReasonDrifted && result.Observation.ResourceVersion != live.ResourceVersion { // it may have a field that the server drops
			c.addNote(plan.Note{Key: d.Key, Reason: plan.NoteDriftRepaired, Message: "drift repaired: " + step.Drift.String()})
		}
		t.use(c, d.Key, result.Observation, "", now)
	case execute.IsConflict(err) && c.looks[d.Key] < maxLooks:
		c.looks[d.Key]++
		return true, nil
	case t.isUsable(ctx, r, c, d, live, err):
		if live.Existence != plan.Present {
			live = served
		}
		t.use(c, d.Key, live, usedAsItIs(err), now)
		t.known = t.known && execute.IsForbidden(err) // otherwise a component that needs the other content looks at it again
	default:
		c.in.Live[d.Key] = live
		c.addRefusal(step, err)
		c.noteFailure(d.Key, err)
	}
	return false, nil
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/backoff"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/report"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
)

// syncTimeout is how long a call waits for watches to start; objects that they do not know by then
// are read.
const syncTimeout = 10 * time.Second

// Watch watches the objects of an owner. With wait, it returns when the watches of the recorded
// types have listed their objects: a list of a type costs less than a read of each of its objects.
func (o *Observer) Watch(ctx context.Context, owner string, requests []Request, wait bool) {
	if o.store == nil {
		return
	}
	look := &batch{observer: o, types: map[typeKey]resolvedType{}}
	var all, recorded []watch.Place
	known := map[placeKey]bool{}
	for _, request := range requests {
		exists := request.Recorded != nil && request.Recorded.UID != ""
		key := placeKey{request.typeKey(), request.Key.Namespace, exists}
		if known[key] {
			continue
		}
		known[key] = true
		answer := look.typeOf(ctx, request)
		if answer.err != nil || answer.resource.Namespaced != (request.Key.Namespace != "") {
			continue
		}
		place := request.place(answer.resource)
		all = append(all, place)
		if exists {
			recorded = append(recorded, place)
		}
	}
	o.store.Keep(owner, all)
	if wait && len(recorded) > 0 {
		ctx, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		o.store.Wait(ctx, recorded)
	}
}

// placeKey identifies requests that need the same watch.
type placeKey struct {
	typeKey
	namespace string
	exists    bool
}

// StopWatching ends the watches of an owner that has no objects any more.
func (o *Observer) StopWatching(owner string) {
	if o.store != nil {
		o.store.Keep(owner, nil)
	}
	o.DriftChecks.reads.ForgetOwner(owner)
}

// fromCache answers a request from the watches, if their state is enough.
func (l *batch) fromCache(ctx context.Context, resource cluster.Resource, request Request) (plan.Observation, bool) {
	if request.ForceRead {
		return plan.Observation{}, false
	}
	if store := l.observer.store; store != nil {
		if observation, known, _ := store.Look(request.place(resource), request.Key.Name); known {
			return l.observer.isEnough(ctx, resource, request, observation)
		}
	}
	if request.AssumeAbsent {
		return plan.Observation{Existence: plan.NotFetched}, true
	}
	return plan.Observation{}, false
}

func (l *batch) toCache(resource cluster.Resource, request Request, observation plan.Observation) plan.Observation {
	if request.Desired != nil {
		l.observer.DriftChecks.setDrift(request.Owner.ID, request.Key, observation.Drift)
	}
	if store := l.observer.store; store != nil {
		store.Read(request.Owner.ID, request.place(resource), request.Key.Name, observation)
	}
	return observation
}

// isEnough reports whether the watched state of an object is all that the planner needs of it.
// Otherwise the object has to be read, because the answer depends on its manifest, which is not
// known when an event arrives.
func (o *Observer) isEnough(ctx context.Context, resource cluster.Resource, request Request, observation plan.Observation) (plan.Observation, bool) {
	// That an object has another owner must not be outdated: we may have adopted it since,
	// and the answer may be lost. It would be left over.
	if !request.Owner.Owns(observation.Ownership) {
		return plan.Observation{}, false
	}
	if request.Desired != nil && !hasOutputs(observation.Status, request.Desired.Policies.Outputs) {
		return plan.Observation{}, false // the live object lacks the annotations
	}
	owner, key := request.Owner.ID, request.Key
	switch asks, isCheck, now := needsRead(request, observation), isDriftCheck(request, observation), o.options.Now(); {
	case asks && (!isCheck || o.DriftChecks.Allow(owner, key, observation.ObservedHash, now)):
		return plan.Observation{}, false
	case asks:
		observation.Deferred, observation.Drift = true, o.DriftChecks.lastDrift(owner, key, now)
	case isCheck && request.Desired != nil:
		o.DriftChecks.setDrift(owner, key, nil) // it is as it was when it was right
	}
	if observation.Status.Readiness == plan.ReadinessUnknown && !o.declaresConditions(ctx, resource.GVK()) {
		observation.Status.Readiness, observation.Status.Message = plan.Ready, ""
	}
	return observation, true
}

// hasOutputs reports whether the outputs of an object were evaluated.
func hasOutputs(status plan.Status, outputs []policy.Output) bool {
	if len(outputs) == 0 {
		return true
	}
	values := OutputsOf(status)
	return !slices.ContainsFunc(outputs, func(output policy.Output) bool { _, evaluated := values[output.Expression]; return !evaluated })
}

// needsRead reports whether the live values at the paths of the manifest matter: the object may
// have drifted, or its present state is to be recorded.
func needsRead(request Request, observation plan.Observation) bool {
	if request.Desired == nil {
		return false
	}
	if !isDriftCheck(request, observation) {
		// It is written in any case, unless it is applied only once.
		repeats := request.Desired.Policies.Reconcile
		return repeats != v1alpha1.ReconcilePolicyOnObjectChange && repeats != v1alpha1.ReconcilePolicyOnObjectOrComponentChange
	}
	return request.Recorded.ObservedHash != observation.ObservedHash
}

// isDriftCheck reports whether the object has to be read only to find out whether it has
// drifted since it was written.
func isDriftCheck(request Request, observation plan.Observation) bool {
	item := request.Recorded
	return item != nil && item.Digest != "" && item.UID == observation.UID
}

// Reduce reduces an object without its manifest, as it arrives in an event. The hints of its
// manifest about its readiness are in its annotations, too.
func (o *Observer) Reduce(live *unstructured.Unstructured) plan.Observation {
	observation := o.outline(live, nil)
	hints, expression, outputs := o.readinessOf(live)
	observation.Status = o.analyze(live, hints, expression, outputs)
	return observation
}

// readinessOf reads the annotations about the readiness and the outputs of an object. If they are invalid, we have
// not written them, and the object has drifted.
func (o *Observer) readinessOf(live *unstructured.Unstructured) (policy.StatusHints, string, []policy.Output) {
	said := map[string]string{}
	for key, value := range live.GetAnnotations() {
		suffix, ours := strings.CutPrefix(key, o.options.Name+"/")
		kind, _, _ := strings.Cut(suffix, ".")
		if ours && value != "" && slices.Contains(aboutStatus, kind) {
			said[key] = value
		}
	}
	var set policy.Set
	if len(said) > 0 {
		set, _ = policy.Parse(o.options.Name, said, policy.Set{})
	}
	gvk := live.GroupVersionKind()
	return set.Hints, o.readyWhen(set.ReadyWhen, gvk.Group, gvk.Kind), set.Outputs
}

// aboutStatus are the annotations about what the status of an object means.
var aboutStatus = []string{v1alpha1.AnnotationStatusHint, v1alpha1.AnnotationReadyWhen, v1alpha1.AnnotationOutput, v1alpha1.AnnotationSecretOutput}

// BeginWrite is called before an object is written, and the returned function afterwards.
func (o *Observer) BeginWrite(ctx context.Context, step plan.Step) (done func(plan.Result)) {
	if o.store == nil {
		return func(plan.Result) {}
	}
	resource, err := o.types.ResolveAny(ctx, step.Key.GroupKind(), step.Version)
	if err != nil {
		return func(plan.Result) {}
	}
	answered := o.store.Writing(step.Owner.ID, watch.Place{Resource: resource, Namespace: step.Key.Namespace}, step.Key.Name)
	return func(result plan.Result) {
		observation := result.Observation
		o.keepDriftOfWrite(step, observation)
		switch observation.Existence {
		case plan.Present:
			answered(&observation)
		case plan.Absent:
			observation.UID = step.UID
			answered(&observation)
		default:
			answered(nil)
		}
	}
}

// keepDriftOfWrite notes how an object has drifted that was just written. Drift stays only
// if nothing but our label and annotation was put back.
func (o *Observer) keepDriftOfWrite(step plan.Step, answer plan.Observation) {
	if answer.Existence != plan.Present && answer.Existence != plan.Absent {
		return
	}
	var drift *report.Drift
	if step.Verb == plan.VerbMark && answer.AppliedHash != step.ItemAfter.AppliedHash {
		drift = answer.Drift
	}
	o.DriftChecks.setDrift(step.Owner.ID, step.Key, drift)
}

// driftCheckLimits are for objects that change again and again.
var driftCheckLimits = backoff.Limits{Burst: 5, Base: 10 * time.Second, Limit: 5 * time.Minute, Quiet: 5 * time.Minute}

// DriftChecks limit how often objects are read because something about them has changed.
// Most changes are no drift: some objects are written every second, at fields that their
// manifests do not set. They are safe for concurrent use.
type DriftChecks struct {
	reads *backoff.Throttle[string, plan.Key, driftCheck]
}

type driftCheck struct {
	hash  string        // of the object that was read
	drift *report.Drift // the drift that the read found
}

// NewDriftChecks returns the DriftChecks of an Observer.
func NewDriftChecks() *DriftChecks {
	return &DriftChecks{backoff.NewThrottle[string, plan.Key, driftCheck](driftCheckLimits)}
}

// Allow reports whether an object of the owner may be read now, because its hash is not
// the recorded one. A read of the hash that was allowed last is allowed again, and does
// not count: its result is still to be used.
func (c *DriftChecks) Allow(owner string, key plan.Key, hash string, now time.Time) bool {
	known := c.reads.Get(owner, key, now)
	switch {
	case known.Count > 0 && known.Value.hash == hash:
		return true
	case now.Before(known.Until):
		return false
	}
	c.reads.Count(owner, key, driftCheck{hash, known.Value.drift}, now)
	return true
}

// Next returns when an object of the owner may be read because it changed; now, if it may
// be read at once.
func (c *DriftChecks) Next(owner string, key plan.Key, now time.Time) time.Time {
	if until := c.reads.Get(owner, key, now).Until; until.After(now) {
		return until
	}
	return now
}

// unlisted is the key of all objects together that have the ownership label and
// annotation of an owner and are neither desired nor recorded. No object has it.
var unlisted = plan.Key{}

// NextUnlisted counts a change of an unlisted object, and returns when the owner is to
// look at it. There may be any number of such objects, so they count as one.
func (c *DriftChecks) NextUnlisted(owner string, now time.Time) time.Time {
	return c.countNext(owner, unlisted, now)
}

func (c *DriftChecks) countNext(owner string, key plan.Key, now time.Time) time.Time {
	next := c.Next(owner, key, now)
	if next.Equal(now) {
		c.reads.Count(owner, key, driftCheck{}, now)
	}
	return next
}

// NextOutput counts a change of the outputs of an object, and returns when the owner is to publish them.
func (c *DriftChecks) NextOutput(owner string, key plan.Key, now time.Time) time.Time {
	key.Name += "/outputs" // changes of outputs do not hold up the repair of drift
	return c.countNext(owner, key, now)
}

// setDrift keeps the drift of an object, nil if it has not drifted, for as long as Allow
// may refuse to read it.
func (c *DriftChecks) setDrift(owner string, key plan.Key, drift *report.Drift) {
	c.reads.UpdateValue(owner, key, func(check driftCheck) driftCheck { check.drift = drift; return check })
}

// lastDrift returns the drift that the last read of an object has found.
func (c *DriftChecks) lastDrift(owner string, key plan.Key, now time.Time) *report.Drift {
	return c.reads.Get(owner, key, now).Value.drift
}

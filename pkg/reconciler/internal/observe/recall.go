// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
)

// syncTimeout is how long a call waits for watches to begin; what they do not tell
// by then is read.
const syncTimeout = 10 * time.Second

// Follow watches what an owner has, and waits until the watches of what is recorded
// tell what exists: a list of a type costs less than a read of each of its objects.
func (o *Observer) Follow(ctx context.Context, owner string, requests []Request) {
	if o.store == nil {
		return
	}
	look := &look{observer: o, types: map[typeKey]typeAnswer{}}
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
		place := watch.Place{Resource: answer.resource, Namespace: request.Key.Namespace}
		all = append(all, place)
		if exists {
			recorded = append(recorded, place)
		}
	}
	o.store.Keep(owner, all)
	if len(recorded) > 0 {
		ctx, cancel := context.WithTimeout(ctx, syncTimeout)
		defer cancel()
		o.store.Wait(ctx, recorded)
	}
}

// placeKey is where requests of one kind are about.
type placeKey struct {
	typeKey
	namespace string
	exists    bool
}

// Unfollow ends the watches of an owner that has nothing any more.
func (o *Observer) Unfollow(owner string) {
	if o.store != nil {
		o.store.Keep(owner, nil)
	}
	o.Suspicions.Forget(owner)
}

// recall answers a request from what is known, if that is enough.
func (l *look) recall(ctx context.Context, resource cluster.Resource, request Request) (plan.Observation, bool) {
	if request.ForceRead {
		return plan.Observation{}, false
	}
	if store := l.observer.store; store != nil {
		place := watch.Place{Resource: resource, Namespace: request.Key.Namespace}
		if observation, known, _ := store.Look(place, request.Key.Name); known {
			return l.observer.complete(ctx, resource, request, observation)
		}
	}
	if request.AssumeAbsent {
		return plan.Observation{Existence: plan.NotFetched}, true
	}
	return plan.Observation{}, false
}

// remember takes over what was read of an object that is watched.
func (l *look) remember(resource cluster.Resource, request Request, observation plan.Observation) plan.Observation {
	if request.Desired != nil {
		l.observer.Suspicions.Looked(request.Owner.ID, request.Key, observation.Drift)
	}
	if store := l.observer.store; store != nil {
		store.Read(request.Owner.ID, watch.Place{Resource: resource, Namespace: request.Key.Namespace}, request.Key.Name, observation)
	}
	return observation
}

// complete tells whether the record of an object is all that the planner needs of
// it. Otherwise the object has to be read, because its manifest, which nobody knows
// when an event arrives, has a say.
func (o *Observer) complete(ctx context.Context, resource cluster.Resource, request Request, observation plan.Observation) (plan.Observation, bool) {
	// Whose an object is must not be an old story if it is not ours: we may have taken
	// it over since, and the answer may be lost. It would be left behind.
	if !request.Owner.Owns(observation.Ownership) {
		return plan.Observation{}, false
	}
	owner, key := request.Owner.ID, request.Key
	switch asks, suspicion := asksForAccepted(request, observation), isSuspicion(request, observation); {
	case asks && (!suspicion || o.Suspicions.Allow(owner, key, observation.ObservedHash, o.options.Now())):
		return plan.Observation{}, false
	case asks:
		observation.Deferred, observation.Drift = true, o.Suspicions.Last(owner, key)
	case suspicion && request.Desired != nil:
		o.Suspicions.Looked(owner, key, nil) // it is as it was when it was right
	}
	if observation.Status.Readiness == plan.ReadinessUnknown && !o.declaresConditions(ctx, resource.GVK()) {
		observation.Status = plan.Status{Readiness: plan.Ready}
	}
	return observation, true
}

// asksForAccepted tells whether the live values at the paths of the manifest matter:
// the object may have drifted, or its record is to be made from what it is now.
func asksForAccepted(request Request, observation plan.Observation) bool {
	item := request.Recorded
	if request.Desired == nil {
		return false
	}
	if item == nil || item.Digest == "" || item.UID != observation.UID {
		// It is written in any case, unless it is applied only once.
		return !isRepeated(request.Desired.Policies.Reconcile)
	}
	return item.Seen != observation.ObservedHash
}

// isSuspicion tells whether the object is only to be read if it is not as it was when it
// was looked at last.
func isSuspicion(request Request, observation plan.Observation) bool {
	item := request.Recorded
	return item != nil && item.Digest != "" && item.UID == observation.UID
}

func isRepeated(p v1alpha1.ReconcilePolicy) bool {
	return p == v1alpha1.ReconcilePolicyOnObjectChange || p == v1alpha1.ReconcilePolicyOnObjectOrComponentChange
}

// Reduce judges an object from itself alone, as it arrives in an event. What its
// manifest says about its readiness is in its annotations, too.
func (o *Observer) Reduce(live *unstructured.Unstructured) plan.Observation {
	observation := o.outline(live, nil)
	hints, expression := o.readinessOf(live)
	observation.Status, _ = o.analyze(live, hints, expression)
	return observation
}

// readinessOf reads what the annotations of an object say about its readiness. If
// they are no good, they are not what we have written, and the object has drifted.
func (o *Observer) readinessOf(live *unstructured.Unstructured) (policy.StatusHints, string) {
	said := map[string]string{}
	for _, suffix := range []string{v1alpha1.AnnotationStatusHint, v1alpha1.AnnotationReadyWhen} {
		key := o.options.Name + "/" + suffix
		if value := live.GetAnnotations()[key]; value != "" {
			said[key] = value
		}
	}
	var set policy.Set
	if len(said) > 0 {
		set, _ = policy.Parse(o.options.Name, said, policy.Set{})
	}
	gvk := live.GroupVersionKind()
	return set.Hints, o.readyWhen(set.ReadyWhen, gvk.Group, gvk.Kind)
}

// Writing is called before an object is written, and what it returns afterwards.
func (o *Observer) Writing(ctx context.Context, step plan.Step) (done func(plan.Result)) {
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
		o.wrote(step, observation)
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

// wrote notes how an object has drifted that was just written. Drift stays only if
// nothing but our marks was put back.
func (o *Observer) wrote(step plan.Step, answer plan.Observation) {
	if answer.Existence != plan.Present && answer.Existence != plan.Absent {
		return
	}
	var drift *plan.Drift
	if step.Verb == plan.VerbMark && answer.AppliedHash != step.ItemAfter.Accepted {
		drift = answer.Drift
	}
	o.Suspicions.Looked(step.Owner.ID, step.Key, drift)
}

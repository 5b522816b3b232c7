// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
)

// object reads one object. The type is looked up a second time if the server
// does not know its path any more: it may have been replaced by one with
// another scope or plural.
func (l *look) object(ctx context.Context, request Request) plan.Observation {
	observation, again := l.attempt(ctx, request)
	if again {
		l.forget(request)
		observation, _ = l.attempt(ctx, request)
	}
	return observation
}

// attempt reads the object with what is known about its type; again tells that
// this knowledge turned out to be wrong.
func (l *look) attempt(ctx context.Context, request Request) (observation plan.Observation, again bool) {
	known := l.typeOf(ctx, request)
	if known.err != nil {
		return l.withoutType(request, known), false
	}
	resource := known.resource
	if resource.Namespaced != (request.Key.Namespace != "") {
		return l.wrongScope(request, resource), true
	}
	if cluster.IsBuiltIn(resource.GVR.Group) && resource.Can("create") != resource.Can("get") {
		// The server answers such an object when it is created, and keeps none, or
		// makes up what can be read.
		return plan.Observation{Existence: plan.Absent}, false
	}
	if observation, enough := l.recall(ctx, resource, request); enough {
		return observation, false
	}
	live, err := l.observer.objects.Get(ctx, resource, request.Key.Namespace, request.Key.Name)
	l.heard(err)
	switch {
	case err == nil:
		request.Desired = request.Desired.Unpacked()
		return l.remember(resource, request, l.observer.compared(ctx, live, request)), false
	case cluster.IsNotFound(err, resource, request.Key.Name):
		return plan.Observation{Existence: plan.Absent, Finish: l.lastEnding(resource, request)}, false
	default:
		_, unserved := errors.AsType[*cluster.UnservedPathError](err)
		return unknown(err), unserved
	}
}

// lastEnding is how far the recorded object had come when a watch saw it go.
func (l *look) lastEnding(resource cluster.Resource, request Request) plan.Finish {
	if l.observer.store == nil || request.Recorded == nil {
		return plan.FinishUnknown
	}
	place := watch.Place{Resource: resource, Namespace: request.Key.Namespace}
	return l.observer.store.Ending(place, request.Key.Name, request.Recorded.UID)
}

func (l *look) heard(err error) {
	if cluster.IsUnavailable(err) {
		l.silent.Add(1)
	} else {
		l.silent.Store(0)
	}
}

// withoutType judges an object whose type cannot be resolved.
func (l *look) withoutType(request Request, known typeAnswer) plan.Observation {
	_, notServed := errors.AsType[*cluster.NotServedError](known.err)
	if request.Desired == nil && known.gone {
		return plan.Observation{Existence: plan.Absent}
	}
	observation := unknown(known.err)
	observation.NotServed = notServed
	return observation
}

// wrongScope judges an object that lives in a namespace although its type does
// not, or the other way round. Such an object cannot exist: the type was
// replaced, and all objects of its predecessor are gone.
func (l *look) wrongScope(request Request, resource cluster.Resource) plan.Observation {
	if request.Desired == nil {
		return plan.Observation{Existence: plan.Absent}
	}
	where := "without namespaces"
	if resource.Namespaced {
		where = "in namespaces"
	}
	return unknown(fmt.Errorf("objects of type %s live %s now", request.Key.GroupKind(), where))
}

// typeKey is a question about a type. A wanted object needs its own version.
type typeKey struct {
	gvk   schema.GroupVersionKind
	exact bool
}

// typeAnswer is the answer; gone tells that the type is provably gone.
type typeAnswer struct {
	resource cluster.Resource
	err      error
	gone     bool
}

func (request Request) typeKey() typeKey {
	return typeKey{
		gvk:   request.Key.GroupKind().WithVersion(request.Version),
		exact: request.Desired != nil && request.Version != "",
	}
}

func (l *look) typeOf(ctx context.Context, request Request) typeAnswer {
	key := request.typeKey()
	l.lock.Lock()
	known, asked := l.types[key]
	l.lock.Unlock()
	if asked {
		return known
	}
	known = l.ask(ctx, key)
	if ctx.Err() != nil {
		return known // perhaps only an echo of the end
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.types[key] = known
	return known
}

func (l *look) ask(ctx context.Context, key typeKey) (answer typeAnswer) {
	types := l.observer.types
	if key.exact {
		answer.resource, answer.err = types.Resolve(ctx, key.gvk)
	} else {
		answer.resource, answer.err = types.ResolveAny(ctx, key.gvk.GroupKind(), key.gvk.Version)
	}
	l.heard(answer.err)
	if _, notServed := errors.AsType[*cluster.NotServedError](answer.err); !notServed || key.exact {
		return answer
	}
	gone, err := types.Gone(ctx, key.gvk.GroupKind())
	if err != nil {
		answer.err = fmt.Errorf("%w, and whether it is gone for good is not known: %w", answer.err, err)
	}
	answer.gone = gone
	return answer
}

// forget lets the type be asked for again.
func (l *look) forget(request Request) {
	key := request.typeKey()
	l.lock.Lock()
	defer l.lock.Unlock()
	if known, asked := l.types[key]; asked {
		l.observer.types.Forget(known.resource.GVK())
		delete(l.types, key)
	}
}

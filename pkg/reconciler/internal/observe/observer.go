// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/confidential"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/status"
)

// Options tune an Observer.
type Options struct {
	// Name is the name of the reconciler: the prefix of our label and annotation.
	Name string
	// FieldOwner is the field manager of our writes.
	FieldOwner string
	// Hasher makes the digests of live objects.
	Hasher digest.Hasher
	// Compiler compiles ready-when expressions; nil is allowed.
	Compiler *status.Compiler
	// ReadyWhen are the rules for objects that have no expression of their own;
	// the first that matches counts. They are valid.
	ReadyWhen []ReadyWhen
	// Now is the clock; it is required.
	Now func() time.Time
	// Changed is called with changes of objects that other clients made; see package
	// watch. If it is nil, nothing is watched.
	Changed func(watch.Change)
	// WatchNamespaces watches objects in the namespaces that they are in only.
	WatchNamespaces bool
	// Parallelism bounds the requests under way at once for one call; it is at least 1.
	Parallelism int
}

// ReadyWhen is an expression for the objects of some types.
type ReadyWhen struct {
	Type       v1alpha1.TypeInfo
	Expression string
}

// Observer observes objects of one target: by watches, as far as they are enabled
// and allowed, and by reads. It is safe for concurrent use.
type Observer struct {
	objects *cluster.Objects
	types   *cluster.Types
	options Options
	store   *watch.Store // nil if nothing is watched
	// DriftChecks limit how often objects are read because they changed.
	DriftChecks *DriftChecks
}

// New returns an Observer.
func New(target cluster.Target, options Options) *Observer {
	o := &Observer{objects: target.Objects(), types: target.Types(), options: options, DriftChecks: NewDriftChecks()}
	if options.Changed != nil {
		o.store = watch.New(target, watch.Options{
			Label: options.Name + "/" + vocabulary.LabelOwnerID, Reduce: o.Reduce, Changed: options.Changed, Namespaces: options.WatchNamespaces,
		})
	}
	return o
}

// Detached returns an Observer that reads by the given client, watches nothing, and caches nothing.
func (o *Observer) Detached(objects *cluster.Objects) *Observer {
	detached := *o
	detached.objects, detached.store, detached.DriftChecks = objects, nil, NewDriftChecks()
	return &detached
}

// Close ends all watches. Objects that were watched are read from then on.
func (o *Observer) Close() {
	if o.store != nil {
		o.store.Close()
	}
}

// Request asks for one object.
type Request struct {
	Key plan.Key
	// Version is the API version that the object is desired or recorded in;
	// empty means any.
	Version string
	// Desired is the desired object. If it is nil, the object may be read in
	// any version, and it counts as absent if its type is provably gone.
	Desired *plan.Desired
	// Owner is the owner that the request is for.
	Owner plan.Owner
	// Recorded is the object's item in the inventory; nil if there is none.
	Recorded *v1alpha1.InventoryItem
	// ForceRead reads the object, whatever the watches know of it.
	ForceRead bool
	// AssumeAbsent does not read an object of which nothing is known: it is NotFetched.
	AssumeAbsent bool
}

// Observe returns the observations of the watches, and reads all other objects, several at once. An
// object that cannot be read is Unknown and holds up nothing else. The only error is the end of the
// context; then the observations of the unread objects are missing.
func (o *Observer) Observe(ctx context.Context, requests []Request) (map[plan.Key]plan.Observation, error) {
	look := &batch{observer: o, types: map[typeKey]resolvedType{}}
	observations := make(map[plan.Key]plan.Observation, len(requests))
	var lock sync.Mutex
	var group errgroup.Group
	group.SetLimit(o.options.Parallelism)
	for _, request := range requests {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			observation := look.observeSafely(ctx, request)
			if ctx.Err() != nil && observation.Existence == plan.Unknown {
				return nil // it only means that the context ended
			}
			lock.Lock()
			defer lock.Unlock()
			observations[request.Key] = observation
			return nil
		})
	}
	_ = group.Wait() // no function returns an error
	return observations, ctx.Err()
}

// batch is one call of Observe. It resolves every type only once: hundreds of objects may
// wait for the same missing one.
type batch struct {
	observer *Observer
	lock     sync.Mutex
	types    map[typeKey]resolvedType
	// unavailable counts the requests in a row that the server did not answer, or had no time for.
	unavailable atomic.Int64
}

// observeSafely converts a panic, which only a bug in this repository can cause, to an
// object that cannot be read.
func (l *batch) observeSafely(ctx context.Context, request Request) (observation plan.Observation) {
	// A server that had an answer to none of as many requests as are under way at
	// once is not asked hundreds of times more.
	if l.unavailable.Load() >= int64(l.observer.options.Parallelism) {
		return plan.Observation{Message: "cannot be read: the server does not answer, or has too much to do"}
	}
	if err := guard.Call(func() error { observation = l.observe(ctx, request); return nil }); err != nil {
		return unknown(fmt.Errorf("internal error of the operator (%w)", err))
	}
	return observation
}

func unknown(err error) plan.Observation {
	return plan.Observation{Message: Sentence("cannot be read: " + err.Error()), Forbidden: apierrors.IsForbidden(err)}
}

// observe reads one object. The type is looked up a second time if the server
// does not know its path any more: it may have been replaced by one with
// another scope or plural.
func (l *batch) observe(ctx context.Context, request Request) plan.Observation {
	observation, again := l.attempt(ctx, request)
	if again {
		l.forgetType(request)
		observation, _ = l.attempt(ctx, request)
	}
	return observation
}

// attempt reads the object with the cached type; again reports that the cached type
// proved to be wrong.
func (l *batch) attempt(ctx context.Context, request Request) (observation plan.Observation, again bool) {
	known := l.typeOf(ctx, request)
	if known.err != nil && known.gone && request.Desired == nil {
		return plan.Observation{Existence: plan.Absent}, false
	}
	if known.err != nil {
		observation := unknown(known.err)
		_, observation.NotServed = errors.AsType[*cluster.NotServedError](known.err)
		return observation, false
	}
	resource := known.resource
	if resource.Namespaced != (request.Key.Namespace != "") {
		return l.ofWrongScope(request, resource), true
	}
	if cluster.IsBuiltIn(resource.GVR.Group) && resource.Can("create") != resource.Can("get") {
		// The server answers such an object when it is created, and stores none, or makes up the
		// object that can be read.
		return plan.Observation{Existence: plan.Absent}, false
	}
	if observation, enough := l.fromCache(ctx, resource, request); enough {
		return observation, false
	}
	live, err := l.observer.objects.Get(ctx, resource, request.Key.Namespace, request.Key.Name)
	l.countUnavailable(err)
	switch {
	case err == nil:
		request.Desired = request.Desired.Unpacked()
		return l.toCache(resource, request, l.observer.observationWithDrift(ctx, live, request)), false
	case cluster.IsNotFound(err, resource, request.Key.Name):
		return plan.Observation{Existence: plan.Absent, Finish: l.lastEnding(resource, request)}, false
	default:
		_, unserved := errors.AsType[*cluster.UnservedPathError](err)
		err = confidential.Answer(ctx, request.Key.GroupKind(), err)
		return unknown(err), unserved
	}
}

// lastEnding returns how far the recorded object had come when a watch saw its deletion.
func (l *batch) lastEnding(resource cluster.Resource, request Request) plan.Finish {
	if l.observer.store == nil || request.Recorded == nil {
		return plan.FinishUnknown
	}
	return l.observer.store.Ending(request.place(resource), request.Key.Name, request.Recorded.UID)
}

func (l *batch) countUnavailable(err error) {
	if cluster.IsUnavailable(err) {
		l.unavailable.Add(1)
	} else {
		l.unavailable.Store(0)
	}
}

// ofWrongScope is the observation of an object that lives in a namespace although its type does
// not, or the other way round. Such an object cannot exist: the type was
// replaced, and all objects of its predecessor are gone.
func (l *batch) ofWrongScope(request Request, resource cluster.Resource) plan.Observation {
	if request.Desired == nil {
		return plan.Observation{Existence: plan.Absent}
	}
	where := "without namespaces"
	if resource.Namespaced {
		where = "in namespaces"
	}
	return unknown(fmt.Errorf("objects of type %s live %s now", request.Key.GroupKind(), where))
}

// typeKey identifies a type to resolve. A desired object needs its own version.
type typeKey struct {
	gvk   schema.GroupVersionKind
	exact bool
}

// resolvedType is the result; gone means that the type is provably gone.
type resolvedType struct {
	resource cluster.Resource
	err      error
	gone     bool
}

func (request Request) place(resource cluster.Resource) watch.Place {
	return watch.Place{Resource: resource, Namespace: request.Key.Namespace}
}

func (request Request) typeKey() typeKey {
	return typeKey{
		gvk:   request.Key.GroupKind().WithVersion(request.Version),
		exact: request.Desired != nil && request.Version != "",
	}
}

func (l *batch) typeOf(ctx context.Context, request Request) resolvedType {
	key := request.typeKey()
	l.lock.Lock()
	known, asked := l.types[key]
	l.lock.Unlock()
	if asked {
		return known
	}
	known = l.resolveType(ctx, key)
	if ctx.Err() != nil {
		return known // perhaps only because the context ended
	}
	l.lock.Lock()
	defer l.lock.Unlock()
	l.types[key] = known
	return known
}

func (l *batch) resolveType(ctx context.Context, key typeKey) (answer resolvedType) {
	types := l.observer.types
	if key.exact {
		answer.resource, answer.err = types.Resolve(ctx, key.gvk)
	} else {
		answer.resource, answer.err = types.ResolveAny(ctx, key.gvk.GroupKind(), key.gvk.Version)
	}
	l.countUnavailable(answer.err)
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

func (l *batch) forgetType(request Request) {
	key := request.typeKey()
	l.lock.Lock()
	defer l.lock.Unlock()
	if known, asked := l.types[key]; asked {
		l.observer.types.Forget(known.resource.GVK())
		delete(l.types, key)
	}
}

// maxSentence bounds the text of an error: webhooks may answer with megabytes.
const maxSentence = 500

// Sentence returns the text in one line of bounded length.
func Sentence(text string) string {
	if len(text) > 4*maxSentence {
		text = text[:4*maxSentence] // the rest is not worth looking at
	}
	text = strings.Join(strings.Fields(strings.ToValidUTF8(text, "?")), " ")
	if len(text) <= maxSentence {
		return text
	}
	cut := maxSentence - len("...")
	for cut > 0 && !utf8.RuneStart(text[cut]) {
		cut--
	}
	return text[:cut] + "..."
}

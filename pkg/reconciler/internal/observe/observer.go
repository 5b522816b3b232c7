// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/status"
)

// DefaultParallelism is how many requests are under way at once.
const DefaultParallelism = 8

// Options tune an Observer.
type Options struct {
	// Name is the name of the reconciler: the prefix of our marks.
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
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Changed is told what happened to objects, if it was not our own doing; see
	// package watch. If it is nil, nothing is watched.
	Changed func(watch.Change)
	// Parallelism bounds the requests under way at once for one call.
	// Defaults to DefaultParallelism.
	Parallelism int
}

// ReadyWhen is an expression for the objects of some types.
type ReadyWhen struct {
	Type       v1alpha1.TypeInfo
	Expression string
}

// Observer observes objects of one target: by watches, as far as they are wanted
// and allowed, and by reads. It is safe for concurrent use.
type Observer struct {
	objects *cluster.Objects
	types   *cluster.Types
	options Options
	store   *watch.Store // nil if nothing is watched
	// Suspicions bound how often objects are read because they changed.
	Suspicions Suspicions
}

// New returns an Observer.
func New(target cluster.Target, options Options) *Observer {
	options.Parallelism = cmp.Or(max(options.Parallelism, 0), DefaultParallelism)
	if options.Now == nil {
		options.Now = time.Now
	}
	o := &Observer{objects: target.Objects(), types: target.Types(), options: options}
	if options.Changed != nil {
		o.store = watch.New(target, watch.Options{
			Label: options.Name + "/" + v1alpha1.LabelOwnerID, Reduce: o.Reduce, Changed: options.Changed,
		})
	}
	return o
}

// Close ends all watches. What was watched is read from then on.
func (o *Observer) Close() {
	if o.store != nil {
		o.store.Close()
	}
}

// Request asks for one object.
type Request struct {
	Key plan.Key
	// Version is the API version that the object is wanted or recorded in;
	// empty means any.
	Version string
	// Desired is the wanted object. If it is nil, the object may be read in
	// any version, and it counts as absent if its type is provably gone.
	Desired *plan.Desired
	// Owner is whoever asks.
	Owner plan.Owner
	// Recorded is what the inventory says about the object; nil if it is not in it.
	Recorded *v1alpha1.InventoryItem
	// ForceRead reads the object, whatever is known of it.
	ForceRead bool
	// AssumeAbsent lets an object of which nothing is known be NotFetched. Otherwise it is read.
	AssumeAbsent bool
}

// Observe tells what is known of the objects, and reads the rest, several at once. What cannot be read is Unknown
// and holds up nothing else. The only error is the end of the context; then the
// observations of what was not read are missing.
func (o *Observer) Observe(ctx context.Context, requests []Request) (map[plan.Key]plan.Observation, error) {
	look := &look{observer: o, types: map[typeKey]typeAnswer{}}
	observations := make(map[plan.Key]plan.Observation, len(requests))
	var lock sync.Mutex
	var group errgroup.Group
	group.SetLimit(o.options.Parallelism)
	for _, request := range requests {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error {
			observation := look.contained(ctx, request)
			if ctx.Err() != nil && observation.Existence == plan.Unknown {
				return nil // it says nothing but that the context ended
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

// look is one call of Observe. It asks for every type only once: hundreds of
// objects may wait for the same missing one.
type look struct {
	observer *Observer
	lock     sync.Mutex
	types    map[typeKey]typeAnswer
	// silent counts the requests in a row that the server did not answer, or had no time for.
	silent atomic.Int64
}

// contained turns a panic, which only a mistake of ours can cause, into an
// object that cannot be read: the others must not suffer.
func (l *look) contained(ctx context.Context, request Request) (observation plan.Observation) {
	defer func() {
		if value := recover(); value != nil {
			observation = unknown(fmt.Errorf("internal error of the operator (%v)", value))
		}
	}()
	// A server that had an answer to none of as many requests as are under way at
	// once is not asked hundreds of times more.
	if l.silent.Load() >= int64(l.observer.options.Parallelism) {
		return plan.Observation{Message: "cannot be read: the server does not answer, or has too much to do"}
	}
	return l.object(ctx, request)
}

func unknown(err error) plan.Observation {
	return plan.Observation{Message: Sentence("cannot be read: " + err.Error()), Forbidden: apierrors.IsForbidden(err)}
}

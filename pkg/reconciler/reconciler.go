// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"errors"
	"fmt"

	"k8s.io/client-go/rest"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/trace"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/execute"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/observe"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/watch"
	"github.com/corbel-run/corbel/pkg/status"
)

// Reconciler brings sets of objects into a target cluster and removes them again. Its memory
// between calls only saves requests: everything else is in the inventory. It is safe for concurrent
// use, except that requests of one owner must not run side by side.
type Reconciler struct {
	name      string
	target    cluster.Target
	settings  settings
	compiler  *status.Compiler
	tracer    trace.Tracer
	observer  *observe.Observer
	executor  *execute.Executor
	history   *repairHistory
	handovers handovers
	watched   watchedOwners
	shared    *sharedTypes
}

// Target is a cluster, and the user that reads and writes its objects.
type Target struct{ cluster.Target }

// NewTarget returns the cluster and the user of a configuration, for [NewReconciler]. It sends
// no request. Throttling and timeouts of the configuration are replaced.
func NewTarget(config *rest.Config) (Target, error) {
	target, err := cluster.New(config, cluster.Options{})
	return Target{target}, err
}

// NewReconciler returns a Reconciler that works on the target. The name is a
// DNS name; it is the prefix of the annotations that tune the handling of
// objects and of the label and annotation of ownership. All mistakes in the options are
// reported in one error.
func NewReconciler(name string, target Target, options ReconcilerOptions) (*Reconciler, error) {
	settings, err := options.resolve(name)
	if target.Target == nil {
		err = errors.Join(err, errors.New("a reconciler needs a target"))
	}
	if err != nil {
		return nil, fmt.Errorf("reconciler options: %w", err)
	}
	r := &Reconciler{name: name, target: target, settings: settings, compiler: &status.Compiler{}, tracer: trace.New(options.TracerProvider), history: newRepairHistory()}
	var changed func(watch.Change)
	if settings.Changed != nil {
		changed = r.onChange
	}
	r.observer = observe.New(target, observe.Options{
		Name: name, FieldOwner: settings.fieldOwner, Parallelism: settings.Parallelism, Compiler: r.compiler,
		Hasher: settings.hasher, ReadyWhen: settings.readyWhen, Changed: changed, WatchNamespaces: settings.WatchNamespaces, Now: settings.Now,
	})
	r.shared = newSharedTypes(r)
	r.executor = execute.New(target, r.observer, execute.Options{
		Name: name, FieldOwner: settings.fieldOwner, Parallelism: settings.Parallelism, Tracer: r.tracer,
	})
	return r, nil
}

// onChange passes a change on to ReconcilerOptions.Changed. An object that is neither desired
// nor recorded counts only if both its label and its annotation name the owner, and less and
// less often: any client that may write objects may also write our label and annotation.
func (r *Reconciler) onChange(change watch.Change) {
	owner, listed, ok := r.watched.find(change.Owner, change.Key)
	if !ok || !listed && !change.NamesOwner {
		return
	}
	event, now := Change{Key: change.Key, What: Event(change.What)}, r.settings.Now()
	switch {
	case !listed:
		event.After = r.observer.DriftChecks.NextUnlisted(change.Owner, now).Sub(now)
	case change.Edited:
		event.After = r.observer.DriftChecks.Next(change.Owner, change.Key, now).Sub(now)
	case change.What == watch.Output:
		event.After = r.observer.DriftChecks.NextOutput(change.Owner, change.Key, now).Sub(now)
	}
	r.settings.Changed(owner, event)
}

// StopWatching ends the watches of an owner's objects, whatever its uid; the next Apply or
// Delete starts them again.
func (r *Reconciler) StopWatching(owner Owner) {
	if id := r.watched.remove(owner); id != "" {
		r.observer.StopWatching(id)
	}
}

// IsWatching reports whether the objects of any owner are watched.
func (r *Reconciler) IsWatching() bool { return r.watched.any() }

// Close ends all watches. The Reconciler remains usable, and reads every object from
// then on.
func (r *Reconciler) Close() {
	r.shared.close()
	r.observer.Close()
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"reflect"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	apimeta "k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apitypes "k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/internal/session"
)

const (
	// bulkFrom is how many components of a namespace wait when they are read together.
	bulkFrom = 16
	// bulkLife is for how long what was read together counts, if the watch shows nothing newer. A commit demands that the
	// server has answered about a component in the last five seconds.
	bulkLife = 2 * time.Second
	// bulkPage is how many components a request returns, and bulkMost how many are listed together, the first ones of the
	// namespace. More would be out of date before they are handled.
	bulkPage = 500
	bulkMost = 1000
	// bulkPause is the time without another try after one that failed. After one that was of little use it is bulkLife, then
	// twice as long each time, up to bulkPause.
	bulkPause = time.Minute
)

// bulkReader reads components that wait in the queue by lists: one request for many in place of one each. What it
// returns comes from the server, and is at most bulkLife old, or a part of the first list of its namespace: see walk.
type bulkReader[T Component] struct {
	reader   client.Reader // of the server
	cache    client.Reader // the metadata that the watch of the controller shows
	scheme   *runtime.Scheme
	kind     schema.GroupVersionKind
	selector labels.Selector
	// waiting returns the components of a namespace that wait.
	waiting func(namespace string) map[client.ObjectKey]bool
	// urgent reports whether a user waits for a component.
	urgent func(key client.ObjectKey) bool
	// prefer lets a component that waits come before those of which nothing has changed.
	prefer func(key client.ObjectKey)
	now    func() time.Time

	lock  sync.Mutex
	known map[client.ObjectKey]T
	// missing are those that waited when the last list was made, or were asked for without one. If they are not known, no
	// other list is made for them.
	missing map[client.ObjectKey]bool
	// at is when known was read, pausedUntil when the next try may be.
	at, pausedUntil time.Time
	// walk is the first list of a namespace, while it goes on. Walked are the namespaces that had one.
	walk   *walk[T]
	walked map[string]bool
	// listed is how many components the last list returned, until its use is judged. Until then, used of them were read, and
	// missed others were asked for.
	listed, used, missed int
	// pause is how long the last pause was after a list of little use; zero after one that was of use.
	pause time.Duration

	noted sync.Mutex
	// gone are components that are gone since we removed the last finalizer.
	gone map[client.ObjectKey]apitypes.UID
	// alone says when components were read by themselves or written. What an older list shows of them may be older than our own writes.
	alone map[client.ObjectKey]time.Time
}

// noteWrite notes for the walk the version that a write of ours has given a component, and when the write was sent.
func (r *bulkReader[T]) noteWrite(key client.ObjectKey, version string, sent time.Time) {
	if r == nil {
		return
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	if r.walk != nil && r.walk.namespace == key.Namespace {
		r.noteAlone(key)
		r.walk.progress.noteWrite(key, version, sent)
	}
}

// noteGone notes that a component is gone by our own doing.
func (r *bulkReader[T]) noteGone(obj T) {
	if r == nil {
		return
	}
	r.noted.Lock()
	defer r.noted.Unlock()
	r.gone[client.ObjectKeyFromObject(obj)] = obj.GetUID()
}

func (r *bulkReader[T]) takeGone(key client.ObjectKey) (apitypes.UID, bool) {
	r.noted.Lock()
	defer r.noted.Unlock()
	uid, ok := r.gone[key]
	delete(r.gone, key)
	return uid, ok
}

// version returns the resourceVersion of a component that the watch of the controller shows.
func (r *bulkReader[T]) version(ctx context.Context, key client.ObjectKey) (string, bool) {
	shown, err := r.shown(ctx, key)
	if err != nil {
		return "", false
	}
	return shown.ResourceVersion, true
}

func (r *bulkReader[T]) shown(ctx context.Context, key client.ObjectKey) (*metav1.PartialObjectMetadata, error) {
	shown := &metav1.PartialObjectMetadata{}
	shown.SetGroupVersionKind(r.kind)
	return shown, r.cache.Get(ctx, key, shown)
}

// read reads a component together with others, if many wait. It is session.Options.Recent.
func (r *bulkReader[T]) read(ctx context.Context, key client.ObjectKey, obj T) (session.Read, bool) {
	if _, ok := r.takeGone(key); ok {
		// If there is another one of the same name by now, its creation is still to be shown.
		if _, err := r.shown(ctx, key); apierrors.IsNotFound(err) {
			return session.Read{Gone: true}, true
		}
	}
	if r.urgent(key) { // a list of many takes longer
		r.noteAlone(key)
		return session.Read{}, false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	alone := r.takeAlone(key)
	if !r.at.After(alone) {
		delete(r.known, key)
	}
	if age := r.now().Sub(r.at); age > bulkLife {
		r.judge(age)
		clear(r.known)
		clear(r.missing)
	}
	found, at, uses, ok := r.find(ctx, key, alone)
	if !ok {
		if r.listed > 0 {
			r.missed++
		}
		r.missing[key] = true // so that it is not looked for by another list at once
		return session.Read{}, false
	}
	if shown, ok := r.version(ctx, key); !ok || shown != found.GetResourceVersion() {
		return session.Read{}, false
	}
	*uses++
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found).Elem())
	return session.Read{At: at}, true
}

// find takes a component from what was listed after a time, or is listed now. It returns when that was, or until when a component that
// still has the version of the list was not changed, and what counts its uses.
func (r *bulkReader[T]) find(ctx context.Context, key client.ObjectKey, after time.Time) (found T, at time.Time, uses *int, ok bool) {
	if found, at, ok = r.fromWalk(ctx, key); ok && r.walk.at.After(after) {
		return found, at, &r.walk.used, true
	}
	if _, known := r.known[key]; !known && !r.missing[key] {
		r.list(ctx, key)
		if found, at, ok = r.fromWalk(ctx, key); ok {
			return found, at, &r.walk.used, true
		}
	}
	found, ok = r.known[key]
	delete(r.known, key)
	return found, r.at, &r.used, ok
}

// noteAlone notes that a component is read by itself.
func (r *bulkReader[T]) noteAlone(key client.ObjectKey) {
	r.noted.Lock()
	defer r.noted.Unlock()
	r.alone[key] = r.now()
}

// forget forgets a component.
func (r *bulkReader[T]) forget(key client.ObjectKey) {
	if r != nil {
		r.takeAlone(key)
	}
}

func (r *bulkReader[T]) takeAlone(key client.ObjectKey) time.Time {
	r.noted.Lock()
	defer r.noted.Unlock()
	alone := r.alone[key]
	delete(r.alone, key)
	return alone
}

// judge pauses the lists if the last one, which is too old by now, was of little use: in a large fleet, few of those that are
// listed are among the next ones that are handled. Then each is read by itself.
func (r *bulkReader[T]) judge(age time.Duration) {
	switch {
	case r.listed == 0: // it was judged before
	case r.missed <= r.used || age > bulkPause:
		r.pause = 0
	default:
		r.pause = min(max(2*r.pause, bulkLife), bulkPause)
		r.pausedUntil = r.now().Add(r.pause)
	}
	r.listed, r.used, r.missed = 0, 0, 0
}

// list reads the components of a namespace that wait, unless they are few, or most of the last list is not used.
func (r *bulkReader[T]) list(ctx context.Context, key client.ObjectKey) {
	if r.now().Before(r.pausedUntil) {
		return
	}
	if 2*r.used < r.listed {
		return // most of the last one may still be of use
	}
	waiting := r.waiting(key.Namespace)
	waiting[key] = true
	if unread := len(waiting) - r.knownOf(waiting); unread < bulkFrom {
		return
	}
	clear(r.known)
	r.at, r.listed, r.used, r.missed = r.now(), 0, 0, 0
	last := ""
	for rest, more := "", true; more; more = rest != "" && r.listed < bulkMost && r.knownOf(waiting) < len(waiting) {
		var err error
		rest, err = r.page(ctx, key.Namespace, rest, waiting, func(found T) {
			r.listed++
			r.known[client.ObjectKeyFromObject(found)], last = found, found.GetName() // others may begin to wait in a moment
		})
		if err != nil {
			// One of them may not fit the type. Each is read by itself then.
			logf.FromContext(ctx).V(1).Info("components cannot be read together; they are read one by one", "namespace", key.Namespace, "error", err.Error())
			r.listed, r.pausedUntil = 0, r.now().Add(bulkPause)
			break
		}
		if first := !r.walked[key.Namespace]; first && rest != "" && r.walk == nil {
			r.walk = &walk[T]{namespace: key.Namespace, known: r.known, at: r.at, last: last, rest: rest, size: r.listed}
			r.walked[key.Namespace], r.listed, r.known = true, 0, map[client.ObjectKey]T{}
			return
		}
		r.walked[key.Namespace] = true
	}
	for key := range waiting {
		r.missing[key] = true // one that is known is not looked for in it
	}
}

// page lists components of a namespace, from where the list is to be continued on. It returns what continues it; that is empty at the
// end.
func (r *bulkReader[T]) page(ctx context.Context, namespace, from string, waiting map[client.ObjectKey]bool, add func(T)) (rest string, err error) {
	made, err := r.scheme.New(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
	if err != nil {
		return "", err
	}
	list, ok := made.(client.ObjectList)
	if !ok {
		return "", apierrors.NewMethodNotSupported(schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}, "list")
	}
	if err := r.reader.List(ctx, list, &client.ListOptions{Namespace: namespace, LabelSelector: r.selector, Limit: bulkPage, Continue: from}); err != nil {
		return "", err
	}
	return list.GetContinue(), apimeta.EachListItem(list, func(item runtime.Object) error {
		found, ok := item.(T)
		if !ok {
			return nil
		}
		add(asRead(found))
		// At the start of a process its edit was not seen.
		if key := client.ObjectKeyFromObject(found); waiting[key] && found.GetGeneration() != found.GetStatus().ObservedGeneration {
			r.prefer(key)
		}
		return nil
	})
}

// knownOf returns how many of the components are known.
func (r *bulkReader[T]) knownOf(waiting map[client.ObjectKey]bool) (count int) {
	for key := range waiting {
		if _, known := r.known[key]; known {
			count++
		}
	}
	return count
}

// asRead returns an item of a list as a read of it would be. It does not keep the list.
func asRead[T Component](item T) T {
	alone := newComponent[T]()
	reflect.ValueOf(alone).Elem().Set(reflect.ValueOf(item).Elem())
	alone.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	return alone
}

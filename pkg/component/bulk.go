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

	"github.com/corbel-run/corbel/pkg/lifecycle"
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
	// walkLife is for how long the list counts that a process starts with, if the watch shows nothing newer: as long as an API server
	// continues it. A commit asks the server again.
	walkLife = 5 * time.Minute
)

// bulkReader reads components that wait in the queue by lists: one request for many in place of one each. What it
// returns comes from the server, and is at most bulkLife old.
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
	// at is when known was read, or the beginning of the list that it is a part of; pausedUntil is when the next try may be.
	at, pausedUntil time.Time
	// A process that starts handles all components of a namespace in the order of their names, and lists them page by page:
	// walked is the last one of the page that was read last, without a name if there is no such list, and rest continues it. Seen
	// are the namespaces that had one.
	walked client.ObjectKey
	rest   string
	seen   map[string]bool
	// listed is how many components the last list returned, until its use is judged. Until then, used of them were read, and
	// missed others were asked for.
	listed, used, missed int
	// pause is how long the last pause was after a list of little use; zero after one that was of use.
	pause time.Duration

	goneLock sync.Mutex
	// gone are components that are gone since we removed the last finalizer.
	gone map[client.ObjectKey]apitypes.UID
}

// noteGone notes that a component is gone by our own doing.
func (r *bulkReader[T]) noteGone(obj T) {
	if r == nil {
		return
	}
	r.goneLock.Lock()
	defer r.goneLock.Unlock()
	r.gone[client.ObjectKeyFromObject(obj)] = obj.GetUID()
}

func (r *bulkReader[T]) takeGone(key client.ObjectKey) (apitypes.UID, bool) {
	r.goneLock.Lock()
	defer r.goneLock.Unlock()
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

// read reads a component together with others, if many wait. It is lifecycle.Options.Recent.
func (r *bulkReader[T]) read(ctx context.Context, key client.ObjectKey, obj T) (lifecycle.Read, bool) {
	if _, ok := r.takeGone(key); ok {
		// If there is another one of the same name by now, its creation is still to be shown.
		if _, err := r.shown(ctx, key); apierrors.IsNotFound(err) {
			return lifecycle.Read{Gone: true}, true
		}
	}
	if r.urgent(key) { // a list of many takes longer
		return lifecycle.Read{}, false
	}
	r.lock.Lock()
	defer r.lock.Unlock()
	_, ok := r.known[key]
	if !ok && r.walked.Name != "" {
		r.walk(ctx, key)
	}
	if age := r.now().Sub(r.at); age > walkLife || age > bulkLife && r.walked.Name == "" {
		r.judge(age)
		r.forget()
	}
	if _, ok = r.known[key]; !ok && !r.missing[key] && r.walked.Name == "" {
		r.list(ctx, key)
	}
	found, ok := r.known[key]
	if !ok {
		if r.listed > 0 {
			r.missed++
		}
		r.missing[key] = true // so that it is not looked for by another list at once
		return lifecycle.Read{}, false
	}
	delete(r.known, key)
	if shown, ok := r.version(ctx, key); !ok || shown != found.GetResourceVersion() {
		return lifecycle.Read{}, false
	}
	r.used++
	reflect.ValueOf(obj).Elem().Set(reflect.ValueOf(found).Elem())
	return lifecycle.Read{At: r.at}, true
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
	most, walks := bulkMost, !r.seen[key.Namespace]
	if walks {
		most = bulkPage
	}
	last, rest, err := r.pages(ctx, key.Namespace, "", most, waiting)
	if r.seen[key.Namespace] = true; walks && rest != "" && err == nil {
		r.walked, r.rest = last, rest
	}
	if err != nil {
		// One of them may not fit the type. Each is read by itself then.
		logf.FromContext(ctx).V(1).Info("components cannot be read together; they are read one by one", "error", err.Error())
		r.listed, r.pausedUntil = 0, r.now().Add(bulkPause)
	}
	for key := range waiting {
		r.missing[key] = true // one that is known is not looked for in it
	}
}

// walk reads the next page of the list that the process has started with if a component may be in it. The list ends after its last
// page, or if more components are asked for that are not in it than are.
func (r *bulkReader[T]) walk(ctx context.Context, key client.ObjectKey) {
	inRest := r.rest != "" && key.Namespace == r.walked.Namespace && key.Name > r.walked.Name
	if inRest && r.now().Sub(r.at) <= walkLife {
		var err error
		if r.walked, r.rest, err = r.pages(ctx, key.Namespace, r.rest, bulkPage, r.waiting(key.Namespace)); err == nil {
			return
		}
	} else if !inRest && r.rest != "" && r.missed <= r.used {
		return
	}
	r.listed = 0 // it is not judged
	r.forget()
}

// forget forgets what was read.
func (r *bulkReader[T]) forget() {
	r.walked, r.rest = client.ObjectKey{}, ""
	clear(r.known)
	clear(r.missing)
}

// pages reads components of a namespace from where a list is to be continued on, up to a number of them, as long as there are any
// that wait and are not known. It returns the last one, and what continues the list; that is empty at its end.
func (r *bulkReader[T]) pages(ctx context.Context, namespace, from string, most int, waiting map[client.ObjectKey]bool) (last client.ObjectKey, rest string, err error) {
	options := &client.ListOptions{Namespace: namespace, LabelSelector: r.selector, Limit: bulkPage, Continue: from}
	for read := 0; ; {
		made, err := r.scheme.New(r.kind.GroupVersion().WithKind(r.kind.Kind + "List"))
		if err != nil {
			return last, "", err
		}
		list, ok := made.(client.ObjectList)
		if !ok {
			return last, "", apierrors.NewMethodNotSupported(schema.GroupResource{Group: r.kind.Group, Resource: r.kind.Kind}, "list")
		}
		if err := r.reader.List(ctx, list, options); err != nil {
			return last, "", err
		}
		err = apimeta.EachListItem(list, func(item runtime.Object) error {
			found, ok := item.(T)
			if !ok {
				return nil
			}
			key := client.ObjectKeyFromObject(found)
			last = key
			read++
			r.listed++
			r.known[key] = asRead(found) // others may begin to wait in a moment
			// At the start of a process its edit was not seen.
			if waiting[key] && found.GetGeneration() != found.GetStatus().ObservedGeneration {
				r.prefer(key)
			}
			return nil
		})
		options.Continue = list.GetContinue()
		if err != nil || options.Continue == "" || read >= most || r.knownOf(waiting) == len(waiting) {
			return last, options.Continue, err
		}
	}
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

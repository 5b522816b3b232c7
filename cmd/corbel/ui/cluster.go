// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ui

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/internal/guard"
)

// cluster is the way to the API server, with the rights of one user.
type cluster struct {
	*inspect.Connection
	again func() *inspect.Reader // returns one that does not know the types yet

	types    atomic.Pointer[knownTypes] // nil until they are known
	learning singleflight.Group
}

// knownTypes are the types of components, and what reads them.
type knownTypes struct {
	reader *inspect.Reader
	types  []inspect.Type
	isPart bool // there may be more: not all types could be listed
	at     time.Time
}

func newCluster(config *rest.Config) (*cluster, error) {
	c, err := inspect.Connect(config)
	if err != nil {
		return nil, err
	}
	return &cluster{Connection: c, again: func() *inspect.Reader { c.Forget(); return c.Reader() }}, nil
}

// known returns the types of components. They are listed again, once for all callers, if they are older than a time; if
// that fails, they are as they were. That there are none is no error.
func (k *cluster) known(ctx context.Context, age time.Duration) (*knownTypes, error) {
	if known := k.types.Load(); known != nil && time.Since(known.at) < age {
		return known, nil
	}
	select {
	case <-ctx.Done(): // discovery knows no context, and goes on
		return nil, ctx.Err()
	case learnt := <-k.learning.DoChan("", func() (any, error) { return nil, guarded(k.learn) }):
		if known := k.types.Load(); known != nil {
			return known, nil
		}
		return nil, learnt.Err
	}
}

// learn lists the types of components.
func (k *cluster) learn() error {
	now := &knownTypes{reader: k.again()}
	var err error
	now.types, err = now.reader.Types() // after that the reader may be used concurrently
	if before := k.types.Load(); err != nil && !errors.Is(err, inspect.ErrNoTypes) {
		if before == nil {
			return err
		}
		*now = *before
	} else {
		now.isPart = now.reader.Unlisted() != nil
	}
	now.at = time.Now()
	k.types.Store(now)
	return nil
}

// ages of what is known of the types.
const (
	typesAge   = 30 * time.Second
	unknownAge = 2 * time.Second // for a type that is not known
)

// address names a component, as the query of a request does.
type address struct{ typeName, namespace, name string }

// String is unique for each component.
func (a address) String() string { return a.typeName + "/" + a.namespace + "/" + a.name }

func addressIn(r *http.Request) address {
	q := r.URL.Query()
	return address{q.Get("type"), q.Get("namespace"), q.Get("name")}
}

// component reads the component that a request is about.
func (s *Server) component(ctx context.Context, a address) (*inspect.Reader, inspect.Component, error) {
	if a.typeName == "" || a.name == "" {
		return nil, inspect.Component{}, bad("the query must name a component: type, name and, unless its type has none, namespace")
	}
	for _, age := range []time.Duration{typesAge, unknownAge} {
		known, err := s.cluster.known(ctx, age)
		if err != nil {
			return nil, inspect.Component{}, err
		}
		i := slices.IndexFunc(known.types, func(t inspect.Type) bool { return t.String() == a.typeName })
		if i < 0 {
			continue
		}
		if t := known.types[i]; t.Namespaced && (a.namespace == "" || s.options.Namespace != "" && a.namespace != s.options.Namespace) {
			return nil, inspect.Component{}, refused{http.StatusNotFound, fmt.Sprintf("namespace %q is not shown", a.namespace)}
		}
		c, err := known.reader.Get(ctx, known.types[i], client.ObjectKey{Namespace: a.namespace, Name: a.name})
		return known.reader, c, err
	}
	return nil, inspect.Component{}, refused{http.StatusNotFound, fmt.Sprintf("the cluster has no type of components %q", a.typeName)}
}

// watch calls a function with each object of a type that is there, and then with each change, until the server ends the
// watch, or the context ends.
func (k *cluster) watch(ctx context.Context, kind schema.GroupVersionKind, options *client.ListOptions, each func(object *unstructured.Unstructured, deleted bool)) error {
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
	watcher, err := k.Client.Watch(ctx, list, options)
	if err != nil {
		return err
	}
	defer watcher.Stop()
	for event := range watcher.ResultChan() {
		if event.Type == watch.Error {
			return apierrors.FromObject(event.Object)
		}
		if object, ok := event.Object.(*unstructured.Unstructured); ok && event.Type != watch.Bookmark {
			each(object, event.Type == watch.Deleted)
		}
	}
	return nil
}

// guarded turns a panic about an object into an error: it must not end the program that the server is a part of.
func guarded(do func() error) (err error) {
	defer guard.Into(&err)
	return do()
}

// pause waits, unless the context ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

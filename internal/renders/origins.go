// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package renders

import (
	"context"
	"reflect"
	"sync"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/guard"
)

// Origins says which files objects come from, as far as their generators report it by
// NoteOrigin. It may be used by several goroutines at once.
type Origins struct {
	mu       sync.Mutex
	byObject map[client.Object]string
}

type originsKey struct{}

// WithOrigins returns a context for a generator to be called with, and where the
// origins of its objects can be asked for afterwards.
func WithOrigins(ctx context.Context) (context.Context, *Origins) {
	origins := &Origins{byObject: map[client.Object]string{}}
	return context.WithValue(ctx, originsKey{}, origins), origins
}

// NoteOrigin is called by generators, to say which file, such as a template, an object
// comes from, if the context wants it; see WantsOrigins.
func NoteOrigin(ctx context.Context, object client.Object, origin string) {
	origins, wanted := ctx.Value(originsKey{}).(*Origins)
	if !wanted || !isPointer(object) {
		return
	}
	origins.mu.Lock()
	defer origins.mu.Unlock()
	origins.byObject[object] = origin
}

// WantsOrigins reports whether the context wants to know where objects come from, for
// generators that have to find out.
func WantsOrigins(ctx context.Context) bool {
	_, wanted := ctx.Value(originsKey{}).(*Origins)
	return wanted
}

// Of returns the file that an object comes from, the very object that a generator
// returned and not a copy. It is empty if that is not known.
func (o *Origins) Of(object client.Object) string {
	if !isPointer(object) {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.byObject[object]
}

// KeepOrigins notes the origins of objects that were made anew of others: an object
// comes from where the one of the same kind, namespace and name came from.
func KeepOrigins(ctx context.Context, before, after []client.Object) {
	origins, wanted := ctx.Value(originsKey{}).(*Origins)
	if !wanted {
		return
	}
	// The objects may be of any type that a user wrote; without origins one can live.
	_ = guard.Call(func() error {
		known := map[string]string{}
		for _, object := range before {
			if origin := origins.Of(object); origin != "" {
				known[keyOf(object)] = origin
			}
		}
		for _, object := range after {
			if origin := known[keyOf(object)]; origin != "" && origins.Of(object) == "" {
				NoteOrigin(ctx, object, origin)
			}
		}
		return nil
	})
}

func keyOf(object client.Object) string {
	kind := object.GetObjectKind().GroupVersionKind().GroupKind()
	return kind.String() + "/" + object.GetNamespace() + "/" + object.GetName()
}

// isPointer reports whether the object is a pointer, by which it is identified; any other
// value may not even be a key of a map.
func isPointer(object client.Object) bool { return reflect.ValueOf(object).Kind() == reflect.Pointer }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/manager"
)

// watch is what a controller watches.
type watch struct {
	controller string
	kind       schema.GroupVersionKind
	finalizer  string
}

// watched are the watches of every manager of the process.
var watched = watches{of: map[ctrl.Manager][]watch{}}

type watches struct {
	mu sync.Mutex
	of map[ctrl.Manager][]watch
}

// add adds a watch, unless it does not go together with another one. The function that
// it returns takes it back.
func (w *watches) add(mgr ctrl.Manager, added watch) (func(), error) {
	if !reflect.ValueOf(mgr).Comparable() {
		return func() {}, nil // a wrapper that is not told from another
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	others, known := w.of[mgr]
	if err := added.fits(others); err != nil {
		return nil, err
	}
	if !known {
		// A manager that has ended is not kept in memory.
		forget := manager.RunnableFunc(func(ctx context.Context) error {
			<-ctx.Done()
			w.mu.Lock()
			defer w.mu.Unlock()
			delete(w.of, mgr)
			return nil
		})
		if err := mgr.Add(forget); err != nil {
			return nil, err
		}
	}
	w.of[mgr] = append(slices.Clone(others), added)
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.of[mgr] = slices.DeleteFunc(w.of[mgr], func(other watch) bool { return other == added })
	}, nil
}

// fits checks a watch against others.
func (a watch) fits(others []watch) error {
	for _, other := range others {
		if a.kind.GroupKind() != other.kind.GroupKind() {
			continue
		}
		if a.kind.Version != other.kind.Version {
			return fmt.Errorf("it watches version %s of %s, and controller %s watches version %s: watch one version of a kind, usually the latest",
				a.kind.Version, a.kind.GroupKind(), other.controller, other.kind.Version)
		}
		if a.finalizer != "" && (a.finalizer == other.finalizer || a.finalizer+pendingSuffix == other.finalizer || a.finalizer == other.finalizer+pendingSuffix) {
			return fmt.Errorf("its Finalizer %s on %s is one of controller %s: each needs its own, or the first to finish lets the object go",
				a.finalizer, a.kind.GroupKind(), other.controller)
		}
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// CollectGarbage removes unreferenced Secrets, as after a crash, and repairs the protection of all
// other Secrets. It usually has nothing to do. That a Secret cannot be removed is no error: it is
// tried again, at the latest when the component is deleted.
func (s *Snapshot) CollectGarbage(ctx context.Context, commit Commit) error {
	if s.stored.Chunks == nil || s.unreadable != nil {
		return nil
	}
	for i := range s.secrets {
		if current := &s.secrets[i]; current.unprotected && !current.deleting && current.name != "" {
			if err := s.repairProtection(ctx, current); err != nil {
				s.fail()
				return err
			}
		}
	}
	if len(s.unreferenced) == 0 || s.component.Deleting {
		s.cache()
		return nil
	}
	head := headOf(s.stored)
	if slices.ContainsFunc(s.unreferenced, func(found secret) bool { return found.generation >= head.Generation }) {
		// Another process that has not noticed the loss of its lease may be about to make
		// them the current set.
		head.Generation = s.nextGeneration()
		if err := s.commit(ctx, withHead(s.stored, head), commit); err != nil {
			s.fail()
			return err
		}
	}
	s.removeUnreferenced(ctx)
	s.cache()
	return nil
}

// repairProtection gives back finalizer, label and owner to a Secret.
func (s *Snapshot) repairProtection(ctx context.Context, current *secret) error {
	finalizers := current.finalizers
	if !slices.Contains(finalizers, s.store.finalizer()) {
		finalizers = append(slices.Clone(finalizers), s.store.finalizer())
	}
	answer, err := s.store.patchSecret(ctx, *current, map[string]any{"metadata": map[string]any{
		"finalizers":      finalizers,
		"labels":          s.store.labelsFor(s.component.UID),
		"ownerReferences": ownerReferencesTo(s.component),
	}})
	if err != nil {
		return fmt.Errorf("protect Secret %s/%s, which holds a part of the inventory: %w", current.namespace, current.name, err)
	}
	current.resourceVersion, current.finalizers, current.unprotected = answer.ResourceVersion, answer.Finalizers, false
	return nil
}

// removeOldSets removes all sets but the current set of the head.
func (s *Snapshot) removeOldSets(ctx context.Context) {
	s.unreferenced = append(s.unreferenced, s.secrets...)
	s.secrets = nil
	s.removeUnreferenced(ctx)
}

// removeUnreferenced removes the unreferenced Secrets, and keeps in the list the Secrets that
// cannot be removed now.
func (s *Snapshot) removeUnreferenced(ctx context.Context) {
	failed := make([]bool, len(s.unreferenced))
	_ = parallel(len(s.unreferenced), func(i int) error {
		if err := s.store.removeSecret(ctx, s.component, s.unreferenced[i]); err != nil {
			failed[i] = true
			logf.FromContext(ctx).Error(err, "a Secret of the inventory that is no longer needed stays for now")
		}
		return nil
	})
	var left []secret
	for i, found := range s.unreferenced {
		if failed[i] {
			left = append(left, found)
		}
	}
	s.unreferenced = left
}

// Erase removes all Secrets of a component. It is called before the component's
// own finalizer is removed, and costs nothing if there never were any.
func (s *Store) Erase(ctx context.Context, c Component, stored v1alpha1.Inventory) error {
	if stored.Chunks == nil {
		return nil
	}
	snapshot := &Snapshot{store: s, component: c, stored: stored, unreadable: checkHead(stored.Chunks)}
	all, err := s.listSecrets(ctx, c, snapshot.namespaces())
	if err != nil {
		return err
	}
	if snapshot.unreadable == nil {
		// Secrets of the current set without our label are not in the list. Usually they do
		// not exist.
		names, listed := s.naming(c), map[string]bool{}
		for _, found := range all {
			listed[found.name] = true
		}
		for i := range stored.Chunks.Chunks {
			if name := names.name(stored.Chunks.Current, int64(i)); !listed[name] {
				all = append(all, secret{namespace: snapshot.currentNamespace(), name: name})
			}
		}
	}
	errs := make([]error, len(all))
	_ = parallel(len(all), func(i int) error {
		errs[i] = s.removeSecret(ctx, c, all[i])
		return nil
	})
	s.dropCached(c)
	return join(errs)
}

// maxNamed is how many errors of many are named.
const maxNamed = 3

// joinedErrors are as many errors as there are Secrets, with a text of bounded length.
type joinedErrors []error

// join joins errors; nil if there are none.
func join(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	switch len(errs) {
	case 0:
		return nil
	case 1:
		return errs[0]
	}
	return joinedErrors(errs)
}

// Error names the first of them.
func (e joinedErrors) Error() string {
	var texts []string
	for _, err := range e[:min(len(e), maxNamed)] {
		texts = append(texts, err.Error())
	}
	if more := len(e) - len(texts); more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more errors", more))
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns all of them.
func (e joinedErrors) Unwrap() []error { return e }

// isForbidden reports whether nothing is wrong but that the operator lacks rights: of
// joined errors, each has to be Forbidden.
func isForbidden(err error) bool {
	joined, ok := errors.AsType[joinedErrors](err)
	if !ok {
		return apierrors.IsForbidden(err)
	}
	return !slices.ContainsFunc(joined, func(err error) bool { return !isForbidden(err) })
}

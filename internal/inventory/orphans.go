// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	validate "k8s.io/apimachinery/pkg/api/validate/content"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// State is the state of a component that a process does not see any more.
type State string

const (
	// StateGone: it does not exist any more, though perhaps another one of its name.
	StateGone State = "Gone"
	// StateWithoutFinalizer: it is being deleted, and does not have our finalizer. No operator
	// reconciles it any more, and none removes its Secrets before it is gone.
	StateWithoutFinalizer State = "WithoutFinalizer"
	// StateElsewhere: it exists, and its inventory belongs to another process.
	StateElsewhere State = "Elsewhere"
)

// StateFunc returns the state of a component, by reading from the server.
type StateFunc func(ctx context.Context, c Component) (State, error)

// eraseSecrets removes the Secrets of a component that does not exist any more. Usually they are
// removed before it; if a client removed the finalizer of the component, our finalizer on the
// Secrets would keep them, and their namespace, forever. Secrets that cannot be removed now stay
// cached, unless a right is missing.
func (s *Store) eraseSecrets(ctx context.Context, entry cacheEntry) error {
	err := s.Erase(ctx, entry.component, v1alpha1.Inventory{Chunks: entry.head.DeepCopy()})
	if err == nil || isForbidden(err) {
		s.dropCached(entry.component)
	} else {
		s.setCached(entry)
	}
	return err
}

// erasePredecessor removes the Secrets of an earlier component of the same name. After an
// error it is to be called again, before anything is cached for the component: the cached
// entry of the earlier one would be lost. Missing rights do not block the component.
func (s *Store) erasePredecessor(ctx context.Context, c Component) error {
	entry, ok := s.cached(c.key())
	if !ok || entry.component.UID == c.UID {
		return nil
	}
	err := s.eraseSecrets(ctx, entry)
	if isForbidden(err) {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory outlive their component")
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the Secrets of the inventory of an earlier %s, which is gone: %w", c, err)
	}
	return nil
}

// CleanUpComponent is called when a component does not exist any more for this process, or is being
// deleted without our finalizer. Its cache entry stays until its Secrets are removed, because it is
// gone, or until it belongs to another process. After an error it is to be called again. It gives
// up on Secrets that the operator must not read or write; Orphans may remove them later.
func (s *Store) CleanUpComponent(ctx context.Context, key client.ObjectKey, stateOf StateFunc) error {
	entry, ok := s.cached(key)
	if !ok {
		return nil
	}
	state, err := stateOf(ctx, entry.component)
	switch {
	case err == nil && state == StateGone:
		err = s.eraseSecrets(ctx, entry)
	case err == nil && state == StateElsewhere, isForbidden(err):
		s.dropCached(entry.component)
	}
	if isForbidden(err) {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory may outlive their component")
		return nil
	}
	if err != nil {
		return fmt.Errorf("remove the Secrets of the inventory of %s, if it is gone: %w", entry.component, err)
	}
	return nil
}

// Kind is the type of the components.
type Kind struct {
	Group, Kind string
	Namespaced  bool
}

// Orphans are Secrets that are being deleted, that have no finalizer but ours, and that belong
// to a component that does not exist any more: a client removed its finalizer while no
// operator was running.
type Orphans struct {
	store *Store
	// forbidden are the Secrets that the operator must not change.
	forbidden map[types.UID]bool
}

// Orphans returns the orphans of the store, wherever they are.
func (s *Store) Orphans() *Orphans {
	return &Orphans{store: s, forbidden: map[types.UID]bool{}}
}

// orphan is a Secret that may be one.
type orphan struct {
	component Component
	secret    secret
}

// CleanUp removes our finalizer from all orphans. It goes on after a failure, and returns all
// errors; then it is to be called again. If the operator has no right to change a Secret or to read
// its component, the Secret is named in the log and ignored from then on. So an error that is
// Forbidden means that the right to list Secrets is missing.
func (o *Orphans) CleanUp(ctx context.Context, kind Kind, stateOf StateFunc) error {
	found, listErr := o.find(ctx, kind)
	errs := make([]error, len(found))
	_ = parallel(len(found), func(i int) error {
		errs[i] = o.cleanUpOne(ctx, found[i], stateOf)
		return nil
	})
	var failed, forbidden []error
	for i, err := range errs {
		switch {
		case apierrors.IsForbidden(err):
			o.forbidden[found[i].secret.uid] = true
			forbidden = append(forbidden, err)
		case err != nil:
			failed = append(failed, err)
		}
	}
	if err := join(forbidden); err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of inventories may outlive their components: grant the operator the rights, and restart it")
	}
	return join(append(failed, listErr))
}

// listSize bounds an answer with metadata.
const listSize = 500

// find returns its findings also with an error.
func (o *Orphans) find(ctx context.Context, kind Kind) ([]orphan, error) {
	var found []orphan
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := o.store.options.Client.List(ctx, page, client.InNamespace(o.store.options.Only), client.HasLabels{o.store.options.Name + suffixLabel}, client.Limit(listSize), client.Continue(next))
		if err != nil {
			return found, fmt.Errorf("list the Secrets of inventories: %w", err)
		}
		for i := range page.Items {
			object := &page.Items[i]
			c, ok := o.store.ownerOf(object)
			if !ok || object.DeletionTimestamp == nil || o.forbidden[object.UID] {
				continue
			}
			s, ours := o.store.metadataOf(c, object)
			if ours && kind.canOwn(c, s) && slices.Contains(s.finalizers, o.store.finalizer()) {
				found = append(found, orphan{component: c, secret: s})
			}
		}
		if next = page.Continue; next == "" {
			return found, nil
		}
	}
}

// canOwn reports whether there can be such a component, and we would keep its Secrets
// there. A user with the right to create Secrets can write anything about their owner, and
// no request must be made that no server can answer.
func (k Kind) canOwn(c Component, s secret) bool {
	switch {
	case c.Kind != k.Kind, groupOf(c.APIVersion) != k.Group:
		return false
	case len(c.Name) > validation.DNS1123SubdomainMaxLength, len(validate.IsPathSegmentName(c.Name)) > 0:
		return false
	case k.Namespaced:
		return c.Namespace == s.namespace
	}
	return c.Namespace == "" // wherever an operator kept its Secrets, now or in earlier days
}

func (o *Orphans) cleanUpOne(ctx context.Context, one orphan, stateOf StateFunc) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	c, s := one.component, one.secret
	state, err := stateOf(ctx, c)
	switch {
	case err != nil:
		return fmt.Errorf("find out whether %s is gone, to which Secret %s/%s belongs: %w", c, s.namespace, s.name, err)
	case state == StateGone:
		return o.store.removeSecret(ctx, c, s)
	case state == StateWithoutFinalizer:
		// CleanUpComponent removes its Secrets when it is gone. If more is cached, that stays.
		o.store.mu.Lock()
		defer o.store.mu.Unlock()
		if o.store.cache[c.key()].component.UID != c.UID {
			o.store.cache[c.key()] = cacheEntry{component: c}
		}
	}
	return nil
}

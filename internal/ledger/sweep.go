// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Tidy removes Secrets that a crash left behind, and gives back to the others
// what protects them. It usually has nothing to do. That a Secret cannot be removed
// is no error: it is tried again, at the latest when the component is deleted.
func (b *Book) Tidy(ctx context.Context, commit Commit) error {
	if b.stored.Chunks == nil || b.unreadable != nil {
		return nil
	}
	for i := range b.secrets {
		if s := &b.secrets[i]; s.frayed && !s.deleting && s.name != "" {
			if err := b.mend(ctx, s); err != nil {
				b.fail()
				return err
			}
		}
	}
	if len(b.strays) == 0 || b.component.Deleting {
		b.remember()
		return nil
	}
	head := headOf(b.stored)
	if slices.ContainsFunc(b.strays, func(s secret) bool { return s.generation >= head.Generation }) {
		// Somebody who takes himself for us may be about to make them the current set.
		head.Generation = b.nextGeneration()
		if err := b.commit(ctx, withHead(b.stored, head), commit); err != nil {
			b.fail()
			return err
		}
	}
	b.sweep(ctx)
	b.remember()
	return nil
}

// mend gives back finalizer, label and owner to a Secret.
func (b *Book) mend(ctx context.Context, s *secret) error {
	finalizers := s.finalizers
	if !slices.Contains(finalizers, b.ledger.finalizer()) {
		finalizers = append(slices.Clone(finalizers), b.ledger.finalizer())
	}
	answer, err := b.ledger.patch(ctx, *s, map[string]any{"metadata": map[string]any{
		"finalizers":      finalizers,
		"labels":          b.ledger.labelsFor(b.component.UID),
		"ownerReferences": []metav1.OwnerReference{ownerOf(b.component)},
	}})
	if err != nil {
		return fmt.Errorf("protect Secret %s/%s, which holds a part of the inventory: %w", s.namespace, s.name, err)
	}
	s.resourceVersion, s.finalizers, s.frayed = answer.ResourceVersion, answer.Finalizers, false
	return nil
}

// retire removes all sets but the one that the head names now.
func (b *Book) retire(ctx context.Context) {
	b.strays = append(b.strays, b.secrets...)
	b.secrets = nil
	b.sweep(ctx)
}

// sweep removes the strays, and keeps those that cannot be removed now.
func (b *Book) sweep(ctx context.Context) {
	left := make([]bool, len(b.strays))
	_ = parallel(len(b.strays), func(i int) error {
		if err := b.ledger.remove(ctx, b.component, b.strays[i]); err != nil {
			left[i] = true
			logf.FromContext(ctx).Error(err, "a Secret of the inventory that is no longer needed stays for now")
		}
		return nil
	})
	var strays []secret
	for i, s := range b.strays {
		if left[i] {
			strays = append(strays, s)
		}
	}
	b.strays = strays
}

// Erase removes all Secrets of a component. It is called before the component's
// own finalizer is removed, and costs nothing if there never were any.
func (l *Ledger) Erase(ctx context.Context, c Component, stored v1alpha1.Inventory) error {
	if stored.Chunks == nil {
		return nil
	}
	b := &Book{ledger: l, component: c, stored: stored, unreadable: checkHead(stored.Chunks)}
	all, err := l.list(ctx, c, b.namespaces())
	if err != nil {
		return err
	}
	if b.unreadable == nil {
		all = append(all, b.unlabelled(all)...)
	}
	errs := make([]error, len(all))
	_ = parallel(len(all), func(i int) error {
		errs[i] = l.remove(ctx, c, all[i])
		return nil
	})
	l.forget(c)
	return several(errs)
}

// unlabelled are the Secrets of the current set that a list did not find. Usually
// they do not exist.
func (b *Book) unlabelled(listed []secret) []secret {
	var missing []secret
	names := b.ledger.naming(b.component)
	for i := range b.stored.Chunks.Chunks {
		name := names.name(b.stored.Chunks.Current, int64(i))
		if !slices.ContainsFunc(listed, func(s secret) bool { return s.name == name }) {
			missing = append(missing, secret{namespace: b.home(), name: name})
		}
	}
	return missing
}

// maxAttempts bounds how often a Secret is read again because somebody changed it.
const maxAttempts = 4

// remove deletes a Secret and takes our finalizer away. The finalizer goes first: a
// Secret without it is left to the garbage collector if we do not come that far.
func (l *Ledger) remove(ctx context.Context, c Component, s secret) error {
	var err error
	for range maxAttempts {
		if s.uid == "" {
			object := &corev1.Secret{}
			if err = l.options.Client.Get(ctx, client.ObjectKey{Namespace: s.namespace, Name: s.name}, object); err != nil {
				break
			}
			s, _ = l.factsOf(c, object)
		}
		if err = l.removeSeen(ctx, s); !apierrors.IsConflict(err) {
			break
		}
		s.uid = ""
	}
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("remove Secret %s/%s of the inventory: %w", s.namespace, s.name, err)
	}
	return nil
}

func (l *Ledger) removeSeen(ctx context.Context, s secret) error {
	if slices.Contains(s.finalizers, l.finalizer()) {
		rest := slices.DeleteFunc(slices.Clone(s.finalizers), func(f string) bool { return f == l.finalizer() })
		if _, err := l.patch(ctx, s, map[string]any{"metadata": map[string]any{"finalizers": rest}}); err != nil {
			return err
		}
	}
	if s.deleting {
		return nil
	}
	object := &corev1.Secret{}
	object.Namespace, object.Name = s.namespace, s.name
	return l.options.Client.Delete(ctx, object, client.Preconditions{UID: &s.uid})
}

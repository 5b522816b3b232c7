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

// Fate is what has become of a component that is not seen any more.
type Fate string

const (
	// Vanished: it does not exist any more, though perhaps another one of its name.
	Vanished Fate = "Vanished"
	// Dying: it is being deleted, and does not bear our finalizer. Nobody works on it
	// any more, and nobody removes its Secrets before it is gone.
	Dying Fate = "Dying"
	// Elsewhere: it is there, and its inventory belongs to another process.
	Elsewhere Fate = "Elsewhere"
)

// Gone says that a component does not exist any more. Usually its Secrets went
// before it; if somebody took its finalizer away, our finalizer on them would keep
// them, and their namespace, forever.
func (l *Ledger) Gone(ctx context.Context, key client.ObjectKey) {
	if err := l.free(ctx, key); err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory outlive their component")
	}
}

// free removes the Secrets of a component that does not exist any more. Those that
// cannot be removed now are remembered, unless that is for good.
func (l *Ledger) free(ctx context.Context, key client.ObjectKey) error {
	known, ok := l.recall(key)
	if !ok {
		return nil
	}
	head := known.head
	err := l.Erase(ctx, known.component, v1alpha1.Inventory{Chunks: &head})
	if err != nil && !apierrors.IsForbidden(err) {
		l.remember(known)
	}
	return err
}

// Left says that a component is not seen any more, or does not bear our finalizer any
// more while it is being deleted. Look tells what has become of it, by reading from
// the server. What is known about it is kept until it is certain that it is gone, as
// after Gone, or belongs to another process. After an error Left is to be called again;
// it gives up on what we must not read or write, which Orphans may make up for.
func (l *Ledger) Left(ctx context.Context, key client.ObjectKey, look func(ctx context.Context, c Component) (Fate, error)) error {
	known, ok := l.recall(key)
	if !ok {
		return nil
	}
	fate, err := look(ctx, known.component)
	switch {
	case err == nil && fate == Vanished:
		err = l.free(ctx, key)
	case err == nil && fate == Elsewhere, apierrors.IsForbidden(err):
		l.forget(key)
	}
	if apierrors.IsForbidden(err) {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory may outlive their component")
		return nil
	}
	if err != nil {
		return fmt.Errorf("free the Secrets of the inventory of %s %s, if it is gone: %w", known.component.Kind, key, err)
	}
	return nil
}

// Orphans removes our finalizer from Secrets that are being deleted and whose
// component does not exist any more: somebody took its finalizer away while no
// operator was running. Look tells, by reading from the server, what has become of it.
func (l *Ledger) Orphans(ctx context.Context, group, kind string, look func(ctx context.Context, c Component) (Fate, error)) error {
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := l.options.Client.List(ctx, page, client.HasLabels{l.options.Name + suffixLabel}, client.Limit(listSize), client.Continue(next))
		if err != nil {
			return fmt.Errorf("list the Secrets of inventories: %w", err)
		}
		for i := range page.Items {
			if err := l.orphan(ctx, &page.Items[i], group, kind, look); err != nil {
				return err
			}
		}
		if next = page.Continue; next == "" {
			return nil
		}
	}
}

// listSize bounds an answer with metadata.
const listSize = 500

func (l *Ledger) orphan(ctx context.Context, object *metav1.PartialObjectMetadata, group, kind string, look func(ctx context.Context, c Component) (Fate, error)) error {
	c, ok := l.ownerIn(object)
	if !ok || object.DeletionTimestamp == nil || c.Kind != kind || groupOf(c.APIVersion) != group {
		return nil
	}
	s, ours := l.factsOf(c, object)
	if !ours || !slices.Contains(s.finalizers, l.finalizer()) {
		return nil
	}
	fate, err := look(ctx, c)
	switch {
	case err != nil:
		return err
	case fate == Vanished:
		return l.remove(ctx, c, s)
	case fate == Dying:
		l.remember(knowledge{component: c}) // Left removes them when it is gone
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Gone says that a component does not exist any more. Usually its Secrets went
// before it; if somebody took its finalizer away, our finalizer on them would keep
// them, and their namespace, forever.
func (l *Ledger) Gone(ctx context.Context, key client.ObjectKey) {
	known, ok := l.recall(key)
	if !ok {
		return
	}
	head := known.head
	if err := l.Erase(ctx, known.component, v1alpha1.Inventory{Chunks: &head}); err != nil {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory outlive their component")
	}
}

// Left says that a component is not seen any more. Perhaps it does not exist any
// more, as after Gone; perhaps it only belongs to another process now, and its
// inventory with it. Gone tells, by reading from the server; if it cannot, nothing is
// removed, which Orphans makes up for.
func (l *Ledger) Left(ctx context.Context, key client.ObjectKey, gone func(ctx context.Context, c Component) (bool, error)) {
	known, ok := l.recall(key)
	if !ok {
		return
	}
	if is, err := gone(ctx, known.component); err != nil || !is {
		l.forget(key)
		return
	}
	l.Gone(ctx, key)
}

// Orphans removes our finalizer from Secrets that are being deleted and whose
// component does not exist any more: somebody took its finalizer away while no
// operator was running. Gone tells, by reading from the server, whether that is so.
func (l *Ledger) Orphans(ctx context.Context, group, kind string, gone func(ctx context.Context, c Component) (bool, error)) error {
	next := ""
	for {
		page := &metav1.PartialObjectMetadataList{}
		page.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		err := l.options.Client.List(ctx, page, client.HasLabels{l.options.Name + suffixLabel}, client.Limit(listSize), client.Continue(next))
		if err != nil {
			return fmt.Errorf("list the Secrets of inventories: %w", err)
		}
		for i := range page.Items {
			if err := l.orphan(ctx, &page.Items[i], group, kind, gone); err != nil {
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

func (l *Ledger) orphan(ctx context.Context, object *metav1.PartialObjectMetadata, group, kind string, gone func(ctx context.Context, c Component) (bool, error)) error {
	c, ok := l.ownerIn(object)
	if !ok || object.DeletionTimestamp == nil || c.Kind != kind || groupOf(c.APIVersion) != group {
		return nil
	}
	s, ours := l.factsOf(c, object)
	if !ours || !slices.Contains(s.finalizers, l.finalizer()) {
		return nil
	}
	if isGone, err := gone(ctx, c); err != nil || !isGone {
		return err
	}
	return l.remove(ctx, c, s)
}

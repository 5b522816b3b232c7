// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Open reads the record that the status of a component is the head of. A record
// that is in the status costs no request. What is lost or is not what the head
// names is a loss of the Book; an error means that it is not known, or that Secrets of
// an earlier component of that name are still to be removed.
func (l *Ledger) Open(ctx context.Context, c Component, stored v1alpha1.Inventory) (*Book, error) {
	if stored.Format > v1alpha1.InventoryFormatChunked {
		return nil, &FormatError{Format: stored.Format}
	}
	if err := l.succeed(ctx, c); err != nil {
		return nil, err
	}
	b := &Book{ledger: l, component: c, stored: stored, items: possible(stored.Items)}
	if stored.Chunks == nil {
		return b, nil
	}
	if err := checkHead(stored.Chunks); err != nil {
		b.unreadable = err
		b.lost = []Loss{{Index: -1, Why: err.Error()}}
		return b, b.findStrays(ctx)
	}
	if known, ok := l.recall(c.key()); ok && equality.Semantic.DeepEqual(known.head, *stored.Chunks) {
		if same, err := b.confirm(ctx, known); same || err != nil {
			return b, err
		}
	}
	l.forget(c)
	if err := b.read(ctx); err != nil {
		return nil, err
	}
	b.remember()
	return b, nil
}

// Recall is Open without a request: it returns false if the Secrets have to be looked
// at. If somebody else has changed them since they were, the next write of one of them
// fails, and Open reads them again.
func (l *Ledger) Recall(c Component, stored v1alpha1.Inventory) (*Book, bool) {
	known, ok := l.recall(c.key())
	if !ok || stored.Chunks == nil || stored.Format > v1alpha1.InventoryFormatChunked || checkHead(stored.Chunks) != nil ||
		known.component.UID != c.UID || !known.clean || !equality.Semantic.DeepEqual(known.head, *stored.Chunks) {
		return nil, false
	}
	b := &Book{ledger: l, component: c, stored: stored, items: possible(stored.Items)}
	if stored.Chunks.Current > 0 {
		b.items, b.secrets = known.items, slices.Clone(known.secrets)
	}
	return b, true
}

// remember keeps what the next pass need not read.
func (b *Book) remember() {
	if b.stored.Chunks == nil || len(b.lost) > 0 || b.unreadable != nil {
		b.ledger.forget(b.component)
		return
	}
	b.ledger.remember(knowledge{
		component: b.component,
		head:      headOf(b.stored), items: b.items, secrets: slices.Clone(b.secrets), clean: len(b.strays) == 0,
	})
}

// confirm takes over what is known, if the Secrets are as they were.
func (b *Book) confirm(ctx context.Context, known knowledge) (bool, error) {
	if b.stored.Chunks.Current == 0 && known.clean {
		return true, nil
	}
	listed, err := b.ledger.list(ctx, b.component, b.namespaces())
	if err != nil {
		return false, err
	}
	byName := map[string]secret{}
	for _, s := range listed {
		byName[s.name] = s
	}
	for i, s := range known.secrets {
		now, ok := byName[b.ledger.naming(b.component).name(known.head.Current, int64(i))]
		if !ok && s.name == "" {
			continue // it was lost before, and what it held is known
		}
		if !ok || now.uid != s.uid || now.resourceVersion != s.resourceVersion || now.deleting != s.deleting {
			return false, nil
		}
	}
	if b.stored.Chunks.Current > 0 {
		b.items, b.secrets = known.items, slices.Clone(known.secrets)
	}
	b.setStrays(listed)
	return true, nil
}

// namespaces are where Secrets of the component may be.
func (b *Book) namespaces() []string {
	if b.component.Namespace != "" {
		return []string{b.component.Namespace}
	}
	namespaces := []string{b.ledger.options.Namespace}
	if b.stored.Chunks != nil && b.unreadable == nil && b.stored.Chunks.Namespace != "" && b.stored.Chunks.Namespace != namespaces[0] {
		namespaces = append(namespaces, b.stored.Chunks.Namespace)
	}
	return namespaces
}

// home is the namespace of the current set.
func (b *Book) home() string {
	namespaces := b.namespaces()
	if b.component.Namespace == "" && b.stored.Chunks.Namespace != "" {
		return b.stored.Chunks.Namespace
	}
	return namespaces[0]
}

// setStrays takes the Secrets that are not part of the current set.
func (b *Book) setStrays(listed []secret) {
	current := int64(0)
	if b.unreadable == nil {
		current = b.stored.Chunks.Current
	}
	b.strays = nil
	for _, s := range listed {
		if current == 0 || s.generation != current || s.namespace != b.home() || s.index >= int64(len(b.stored.Chunks.Chunks)) {
			b.strays = append(b.strays, s)
		}
	}
}

func (b *Book) findStrays(ctx context.Context) error {
	listed, err := b.ledger.list(ctx, b.component, b.namespaces())
	if err != nil {
		return err
	}
	b.setStrays(listed)
	return nil
}

// list returns the metadata of all Secrets of a component, by their label.
func (l *Ledger) list(ctx context.Context, c Component, namespaces []string) ([]secret, error) {
	var found []secret
	for _, namespace := range namespaces {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("SecretList"))
		if err := l.options.Client.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels(l.labelsFor(c.UID))); err != nil {
			return nil, listError(namespace, err)
		}
		for i := range list.Items {
			if s, ok := l.factsOf(c, &list.Items[i]); ok {
				found = append(found, s)
			}
		}
	}
	return found, nil
}

func listError(namespace string, err error) error {
	return fmt.Errorf("list the Secrets of the inventory in namespace %s: %w", namespace, err)
}

// pageSize bounds an answer: a Secret may have a megabyte.
const pageSize = 50

// read reads the Secrets of the current set, and checks them.
func (b *Book) read(ctx context.Context) error {
	full, listed := map[string]*corev1.Secret{}, []secret(nil)
	for _, namespace := range b.namespaces() {
		next := ""
		for {
			page := &corev1.SecretList{}
			err := b.ledger.options.Client.List(ctx, page, client.InNamespace(namespace),
				client.MatchingLabels(b.ledger.labelsFor(b.component.UID)), client.Limit(pageSize), client.Continue(next))
			if err != nil {
				return listError(namespace, err)
			}
			for i := range page.Items {
				if s, ok := b.ledger.factsOf(b.component, &page.Items[i]); ok {
					listed = append(listed, s)
					full[s.namespace+"/"+s.name] = &page.Items[i]
				}
			}
			if next = page.Continue; next == "" {
				break
			}
		}
	}
	b.setStrays(listed)
	if b.stored.Chunks.Current == 0 {
		return nil
	}
	return b.readChunks(ctx, full)
}

// readChunks collects the items. A Secret that is not in the list may have lost
// its label.
func (b *Book) readChunks(ctx context.Context, full map[string]*corev1.Secret) error {
	head := b.stored.Chunks
	b.items, b.secrets = nil, make([]secret, len(head.Chunks))
	for i, chunk := range head.Chunks {
		key := client.ObjectKey{Namespace: b.home(), Name: b.ledger.naming(b.component).name(head.Current, int64(i))}
		object := full[key.String()]
		if object == nil {
			object = &corev1.Secret{}
			if err := b.ledger.options.Client.Get(ctx, key, object); apierrors.IsNotFound(err) {
				b.lose(i, key.String(), chunk, errors.New("it does not exist"))
				continue
			} else if err != nil {
				return fmt.Errorf("read Secret %s, which holds a part of the inventory: %w", key, err)
			}
		}
		b.secrets[i], _ = b.ledger.factsOf(b.component, object)
		b.secrets[i].entries = entriesOf(object.Data)
		if chunk.Hash == "" {
			continue
		}
		entry, ok := object.Data[entryKey(chunk.Revision)]
		if !ok {
			b.lose(i, key.String(), chunk, fmt.Errorf("it has no entry %s", entryKey(chunk.Revision)))
			continue
		}
		items, err := unpack(entry, chunk)
		if err != nil {
			b.lose(i, key.String(), chunk, err)
			continue
		}
		b.items = append(b.items, items...)
	}
	b.items = sorted(possible(b.items))
	return nil
}

// lose notes a loss, unless there was nothing to lose.
func (b *Book) lose(i int, name string, chunk v1alpha1.InventoryChunk, why error) {
	if chunk.Hash != "" {
		b.lost = append(b.lost, Loss{Index: i, Secret: name, Why: why.Error()})
	}
	b.secrets[i].broken = true
}

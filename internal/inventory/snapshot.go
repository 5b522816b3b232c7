// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Snapshot is the inventory of one component in the course of one reconcile.
type Snapshot struct {
	store     *Store
	component Component
	// stored is the inventory as the status has it, or is about to have it.
	stored v1alpha1.Inventory
	items  []v1alpha1.InventoryItem
	// secrets are the Secrets of the current set, by index. A Secret without a name is lost.
	secrets []secret
	// unreferenced are Secrets of other sets.
	unreferenced []secret
	lost         []Loss
	// unreadable is the mistake of the head as a whole.
	unreadable error
	// failed: a write failed; the content of the Secrets is unknown.
	failed bool
}

// Loss is a part of the inventory that cannot be read any more.
type Loss struct {
	// Index is the chunk; -1 means all of them.
	Index int
	// Secret names where the items were.
	Secret string
	// Why is the reason of the loss.
	Why string
}

// String is a sentence about the loss.
func (l Loss) String() string {
	if l.Index < 0 {
		return "the head of the inventory: " + l.Why
	}
	return fmt.Sprintf("Secret %s: %s", l.Secret, l.Why)
}

// Inventory is the inventory with all its items, wherever they are kept. While there
// are losses it lacks items, and nothing may be done that relies on it.
func (s *Snapshot) Inventory() v1alpha1.Inventory {
	whole := s.stored
	whole.Format, whole.Items, whole.Chunks = 0, s.items, nil
	if len(s.items) > 0 {
		whole.Format = v1alpha1.InventoryFormat
	}
	return whole
}

// Losses are the parts of the inventory that are to be rebuilt: the objects of all
// Types that belong to a lost part are to be given to Restore.
func (s *Snapshot) Losses() []Loss { return s.lost }

// Types are the types of the objects in the inventory.
func (s *Snapshot) Types() []v1alpha1.InventoryType {
	if s.stored.Chunks == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.stored.Chunks.Types), func(t v1alpha1.InventoryType) bool {
		return t.Kind == "" || t.Version == "" || strings.ContainsAny(t.Group+t.Version+t.Kind, "/ ")
	})
}

// Namespaces are the namespaces of the objects in the inventory; none if they are unknown.
func (s *Snapshot) Namespaces() []string {
	if s.stored.Chunks == nil {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(s.stored.Chunks.Namespaces), func(name string) bool {
		return len(validation.IsDNS1123Label(name)) > 0
	})
}

// Restore adds the objects that were found in place of the lost parts, and returns how many of them
// were missing. An object of a part that is not lost is not added: the inventory certainly does not
// have it.
func (s *Snapshot) Restore(found []v1alpha1.InventoryItem) int {
	missing := map[int]bool{}
	for _, loss := range s.lost {
		missing[loss.Index] = true
	}
	count := 0
	for _, item := range found {
		if missing[-1] || missing[chunkOf(item, len(s.secrets))] {
			s.items = append(s.items, item)
			count++
		}
	}
	s.items = sorted(s.items)
	s.lost = nil
	return count
}

// cache stores the state that the next reconcile need not read.
func (s *Snapshot) cache() {
	if s.stored.Chunks == nil || len(s.lost) > 0 || s.unreadable != nil {
		s.store.dropCached(s.component)
		return
	}
	s.store.setCached(cacheEntry{
		component: s.component, head: headOf(s.stored),
		items: s.items, secrets: slices.Clone(s.secrets), clean: len(s.unreferenced) == 0,
	})
}

// confirm uses the cached state, if the Secrets are as they were.
func (s *Snapshot) confirm(ctx context.Context, entry cacheEntry) (bool, error) {
	if s.stored.Chunks.Current == 0 && entry.clean {
		return true, nil
	}
	listed, err := s.store.listSecrets(ctx, s.component, s.namespaces())
	if err != nil {
		return false, err
	}
	byName := map[string]secret{}
	for _, found := range listed {
		byName[found.name] = found
	}
	for i, before := range entry.secrets {
		now, ok := byName[s.store.naming(s.component).name(entry.head.Current, int64(i))]
		if !ok && before.name == "" {
			continue // it was lost before, and its items are known
		}
		if !ok || now.uid != before.uid || now.resourceVersion != before.resourceVersion || now.deleting != before.deleting {
			return false, nil
		}
	}
	if s.stored.Chunks.Current > 0 {
		s.items, s.secrets = entry.items, slices.Clone(entry.secrets)
	}
	s.setUnreferenced(listed)
	return true, nil
}

// namespaces are where Secrets of the component may be.
func (s *Snapshot) namespaces() []string {
	if s.component.Namespace != "" {
		return []string{s.component.Namespace}
	}
	namespaces := []string{s.store.options.Namespace}
	if s.stored.Chunks != nil && s.unreadable == nil && s.stored.Chunks.Namespace != "" && s.stored.Chunks.Namespace != namespaces[0] {
		namespaces = append(namespaces, s.stored.Chunks.Namespace)
	}
	return namespaces
}

// currentNamespace is the namespace of the current set.
func (s *Snapshot) currentNamespace() string {
	if s.component.Namespace == "" && s.stored.Chunks.Namespace != "" {
		return s.stored.Chunks.Namespace
	}
	return s.namespaces()[0]
}

// setUnreferenced takes the Secrets that are not part of the current set.
func (s *Snapshot) setUnreferenced(listed []secret) {
	current := int64(0)
	if s.unreadable == nil {
		current = s.stored.Chunks.Current
	}
	s.unreferenced = slices.DeleteFunc(listed, func(found secret) bool {
		return current > 0 && found.generation == current && found.namespace == s.currentNamespace() && found.index < int64(len(s.stored.Chunks.Chunks))
	})
}

// pageSize bounds an answer: a Secret may have a megabyte.
const pageSize = 50

// read reads the Secrets of the current set, and checks them.
func (s *Snapshot) read(ctx context.Context) error {
	full, listed := map[string]*corev1.Secret{}, []secret(nil)
	for _, namespace := range s.namespaces() {
		next := ""
		for {
			page := &corev1.SecretList{}
			err := s.store.options.Client.List(ctx, page, client.InNamespace(namespace),
				client.MatchingLabels(s.store.labelsFor(s.component.UID)), client.Limit(pageSize), client.Continue(next))
			if err != nil {
				return listError(namespace, err)
			}
			for i := range page.Items {
				if found, ok := s.store.metadataOf(s.component, &page.Items[i]); ok {
					listed = append(listed, found)
					full[found.namespace+"/"+found.name] = &page.Items[i]
				}
			}
			if next = page.Continue; next == "" {
				break
			}
		}
	}
	s.setUnreferenced(listed)
	if s.stored.Chunks.Current == 0 {
		return nil
	}
	return s.readChunks(ctx, full)
}

// readChunks collects the items. A Secret that is not in the list may have lost
// its label.
func (s *Snapshot) readChunks(ctx context.Context, full map[string]*corev1.Secret) error {
	head := s.stored.Chunks
	s.items, s.secrets = nil, make([]secret, len(head.Chunks))
	for i, chunk := range head.Chunks {
		key := client.ObjectKey{Namespace: s.currentNamespace(), Name: s.store.naming(s.component).name(head.Current, int64(i))}
		object := full[key.String()]
		if object == nil {
			object = &corev1.Secret{}
			if err := s.store.reader.Get(ctx, key, object); apierrors.IsNotFound(err) {
				s.lose(i, key.String(), chunk, errors.New("it does not exist"))
				continue
			} else if err != nil {
				return fmt.Errorf("read Secret %s, which holds a part of the inventory: %w", key, err)
			}
		}
		s.secrets[i], _ = s.store.metadataOf(s.component, object)
		s.secrets[i].entries = entriesOf(object.Data)
		if chunk.Hash == "" {
			continue
		}
		entry, ok := object.Data[entryKey(chunk.Revision)]
		if !ok {
			s.lose(i, key.String(), chunk, fmt.Errorf("it has no entry %s", entryKey(chunk.Revision)))
			continue
		}
		items, err := unpack(entry, chunk)
		if err != nil {
			s.lose(i, key.String(), chunk, err)
			continue
		}
		s.items = append(s.items, items...)
	}
	s.items = sorted(validItems(s.items))
	return nil
}

// lose notes a loss, unless the chunk was empty.
func (s *Snapshot) lose(i int, name string, chunk v1alpha1.InventoryChunk, why error) {
	if chunk.Hash != "" {
		s.lost = append(s.lost, Loss{Index: i, Secret: name, Why: why.Error()})
	}
	s.secrets[i].damaged = true
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TooLargeError means that an inventory does not even fit into Secrets.
type TooLargeError struct{ Why string }

// Error tells the user to split the component.
func (e *TooLargeError) Error() string {
	return "the inventory is too large: " + e.Why + "; split the component into several"
}

// Save makes the inventory durable, before anything is done that relies on it.
func (s *Snapshot) Save(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) error {
	stored, err := s.write(ctx, inventory, commit, true)
	if err == nil {
		err = commit(ctx, stored)
	}
	if err != nil {
		s.fail()
		return err
	}
	s.stored, s.items = stored, inventory.Items
	s.cache()
	return nil
}

// SaveSecrets writes the items that the status cannot hold, and returns the inventory to store in
// the status. Until that is durable, the inventory is the one before. After an error, and after a
// Save that failed, SaveSecrets returns the one before.
func (s *Snapshot) SaveSecrets(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) (v1alpha1.Inventory, error) {
	if s.failed {
		return s.stored, nil
	}
	stored, err := s.write(ctx, inventory, commit, false)
	if err != nil {
		s.fail()
		return s.stored, err
	}
	s.stored, s.items = stored, inventory.Items
	s.cache()
	return s.stored, nil
}

// fail gives up: the Secrets are to be read again.
func (s *Snapshot) fail() {
	s.failed = true
	s.store.dropCached(s.component)
}

// write brings the Secrets in line with the inventory, and returns the form of it
// that is to be durable next. If all of it must become durable, even a deletion
// creates Secrets in place of damaged ones.
func (s *Snapshot) write(ctx context.Context, inventory v1alpha1.Inventory, commit Commit, must bool) (v1alpha1.Inventory, error) {
	if len(s.lost) > 0 {
		return s.stored, fmt.Errorf("the inventory is incomplete (%s); it is not written before it is rebuilt", s.lost[0])
	}
	items, size, err := encode(inventory.Items)
	if err != nil {
		return s.stored, err
	}
	now := len(s.secrets)
	chunks := s.store.limits.chunks(size, now)
	damaged := s.unreadable != nil || slices.ContainsFunc(s.secrets, func(found secret) bool { return found.damaged })
	// Our finalizer is all that holds a Secret of the current set that is being deleted.
	deleting := slices.ContainsFunc(s.secrets, func(found secret) bool { return found.deleting })
	frozen := s.component.Deleting && !(must && damaged)
	switch {
	case frozen && s.unreadable != nil:
		return s.stored, nil // the next reconcile rebuilds it once more
	case s.unreadable == nil && now == 0 && (chunks == 0 || frozen):
		return s.inStatus(inventory, headOf(s.stored)), nil
	case frozen, chunks == now && !damaged && !deleting:
		return s.updateSet(ctx, inventory, items, commit)
	case chunks == 0:
		return s.moveToStatus(ctx, inventory, commit)
	case now == 0 && s.unreadable == nil && size <= s.store.limits.hold:
		forbidden, err := s.secretsForbidden(ctx)
		if err != nil {
			return s.stored, err
		}
		if forbidden {
			return s.inStatus(inventory, headOf(s.stored)), nil
		}
	}
	return s.moveToSet(ctx, inventory, items, commit, chunks)
}

// inStatus returns the inventory with its items in the status.
func (s *Snapshot) inStatus(inventory v1alpha1.Inventory, head v1alpha1.InventoryChunks) v1alpha1.Inventory {
	inventory.Chunks = nil
	if s.stored.Chunks == nil {
		return inventory
	}
	return withHead(inventory, head)
}

// moveToStatus moves the items back into the status.
func (s *Snapshot) moveToStatus(ctx context.Context, inventory v1alpha1.Inventory, commit Commit) (v1alpha1.Inventory, error) {
	head := v1alpha1.InventoryChunks{Generation: s.nextGeneration()}
	if s.unreadable == nil {
		head.Namespace = s.stored.Chunks.Namespace
	}
	stored := s.inStatus(inventory, head)
	if err := s.commit(ctx, stored, commit); err != nil {
		return s.stored, err
	}
	s.removeOldSets(ctx)
	return stored, nil
}

// moveToSet writes all items into a new set of Secrets.
func (s *Snapshot) moveToSet(ctx context.Context, inventory v1alpha1.Inventory, items []encodedItem, commit Commit, chunks int) (v1alpha1.Inventory, error) {
	changes, n, err := packAll(items, chunks)
	if err != nil {
		return s.stored, err
	}
	types := typesOf(inventory.Items)
	if len(types) > maxTypes {
		return s.stored, &TooLargeError{Why: fmt.Sprintf("it names objects of %d types, and %d are possible", len(types), maxTypes)}
	}
	head := v1alpha1.InventoryChunks{Generation: s.nextGeneration(), Revision: 1, Types: types, Namespaces: namespacesOf(inventory.Items)}
	head.Current = head.Generation
	if s.component.Namespace == "" {
		head.Namespace = s.store.options.Namespace
	}
	// A head that cannot be read is left as it is until it is replaced: the types
	// that it names may be all that is left of the inventory.
	if s.unreadable == nil {
		intent := headOf(s.stored)
		intent.Generation = head.Generation
		if err := s.commit(ctx, withHead(s.stored, intent), commit); err != nil {
			return s.stored, err
		}
	}
	secrets, err := s.createSet(ctx, head, changes, n)
	if err != nil {
		return s.stored, err
	}
	head.Chunks = make([]v1alpha1.InventoryChunk, n)
	for _, c := range changes {
		c.chunk.Revision = head.Revision
		head.Chunks[c.index] = c.chunk
	}
	stored := withHead(inventory, head)
	if err := s.commit(ctx, stored, commit); err != nil {
		return s.stored, err
	}
	s.removeOldSets(ctx)
	s.secrets = secrets
	return stored, nil
}

// packAll packs the items into as many chunks as it takes.
func packAll(items []encodedItem, chunks int) ([]change, int, error) {
	for ; chunks <= maxChunks; chunks *= 2 {
		var changes []change
		largest := 0
		for i, content := range distribute(items, chunks) {
			if c := changeOf(i, content, ""); c != nil {
				changes = append(changes, *c)
				largest = max(largest, len(c.entry))
			}
		}
		if largest <= maxEntry {
			return changes, chunks, nil
		}
	}
	return nil, 0, &TooLargeError{Why: fmt.Sprintf("its %d objects do not fit into %d Secrets", len(items), maxChunks)}
}

// createSet creates all Secrets of a set, also for chunks that are still empty: in
// deletion none can be created.
func (s *Snapshot) createSet(ctx context.Context, head v1alpha1.InventoryChunks, changes []change, n int) ([]secret, error) {
	namespace := s.component.Namespace
	if namespace == "" {
		namespace = head.Namespace
	}
	entries := make([][]byte, n)
	for _, c := range changes {
		entries[c.index] = c.entry
	}
	names := s.store.naming(s.component)
	secrets := make([]secret, n)
	err := parallel(n, func(i int) error {
		object := s.store.newSecret(s.component, namespace, names.name(head.Generation, int64(i)), head.Revision, entries[i])
		if entries[i] == nil {
			object.Data = nil
		}
		if err := s.store.options.Client.Create(ctx, object, client.FieldOwner(s.store.options.FieldOwner)); err != nil {
			return fmt.Errorf("create Secret %s/%s for a part of the inventory: %w", namespace, object.Name, err)
		}
		secrets[i], _ = s.store.metadataOf(s.component, object)
		secrets[i].entries = entriesOf(object.Data)
		return nil
	})
	return secrets, err
}

// updateSet writes the chunks that changed into the current set.
func (s *Snapshot) updateSet(ctx context.Context, inventory v1alpha1.Inventory, items []encodedItem, commit Commit) (v1alpha1.Inventory, error) {
	var changes []change
	oversize := false
	for i, content := range distribute(items, len(s.secrets)) {
		c := changeOf(i, content, s.stored.Chunks.Chunks[i].Hash)
		if c == nil || s.secrets[i].damaged && c.entry != nil {
			// A damaged chunk, which is there in deletion only, stays as it is until all its
			// objects are gone: the next reconcile finds the lost items again.
			continue
		}
		oversize = oversize || len(c.entry) > maxEntry
		changes = append(changes, *c)
	}
	if oversize && !s.component.Deleting {
		return s.moveToSet(ctx, inventory, items, commit, 2*len(s.secrets))
	}
	if err := s.invalidateUncommitted(ctx, changes, commit); err != nil {
		return s.stored, err
	}
	head := headOf(s.stored)
	if types := typesOf(inventory.Items); len(types) <= maxTypes {
		head.Types, head.Namespaces = types, namespacesOf(inventory.Items)
	}
	if len(changes) > 0 {
		head.Revision++
	}
	err := parallel(len(changes), func(i int) error {
		if changes[i].entry == nil {
			return nil
		}
		return s.putEntry(ctx, changes[i].index, head.Revision, changes[i].entry)
	})
	if err != nil {
		return s.stored, err
	}
	for _, c := range changes {
		if c.chunk.Hash != "" {
			c.chunk.Revision = head.Revision
		}
		head.Chunks[c.index] = c.chunk
	}
	return withHead(inventory, head), nil
}

// invalidateUncommitted makes sure that entries that are newer than the head, left by a
// crash or just written by another process that has not noticed the loss of its lease, can
// no longer become part of the inventory: the next write of their Secret removes them.
func (s *Snapshot) invalidateUncommitted(ctx context.Context, changes []change, commit Commit) error {
	head := headOf(s.stored)
	newest := head.Revision
	for _, c := range changes {
		for _, revision := range s.secrets[c.index].entries {
			newest = max(newest, revision)
		}
	}
	if newest == head.Revision {
		return nil
	}
	head.Revision = newest
	return s.commit(ctx, withHead(s.stored, head), commit)
}

// putEntry adds an entry to a Secret, and removes all entries that the head does not name.
func (s *Snapshot) putEntry(ctx context.Context, index int, revision int64, entry []byte) error {
	to := &s.secrets[index]
	data := map[string]any{}
	for _, old := range to.entries {
		if s.stored.Chunks.Chunks[index].Hash == "" || old != s.stored.Chunks.Chunks[index].Revision {
			data[entryKey(old)] = nil
		}
	}
	data[entryKey(revision)] = entry
	answer, err := s.store.patchSecret(ctx, *to, map[string]any{"data": data})
	if err != nil {
		return fmt.Errorf("write Secret %s/%s, which holds a part of the inventory: %w", to.namespace, to.name, err)
	}
	to.resourceVersion, to.entries = answer.ResourceVersion, entriesOf(answer.Data)
	return nil
}

// commit makes an intermediate state durable.
func (s *Snapshot) commit(ctx context.Context, stored v1alpha1.Inventory, commit Commit) error {
	if err := commit(ctx, stored); err != nil {
		return err
	}
	s.stored, s.unreadable = stored, nil
	return nil
}

// nextGeneration returns the number of a set that no process has started.
func (s *Snapshot) nextGeneration() int64 {
	last := int64(0)
	if s.unreadable == nil && s.stored.Chunks != nil {
		last = s.stored.Chunks.Generation
	}
	for _, found := range s.unreferenced {
		last = max(last, found.generation)
	}
	return last + 1
}

// forbiddenRetry is after how long the server is asked again whether Secrets may be kept.
const forbiddenRetry = 10 * time.Minute

// secretsForbidden reports whether the operator may not list or create the Secrets that the
// inventory would move to. It is called before the inventory records that there may be some: from
// then on they are looked for.
func (s *Snapshot) secretsForbidden(ctx context.Context) (bool, error) {
	namespace, store := s.namespaces()[0], s.store
	store.mu.Lock()
	since, known := store.forbidden[namespace]
	store.mu.Unlock()
	if known && time.Since(since) < forbiddenRetry {
		return true, nil
	}
	_, err := store.listSecrets(ctx, s.component, []string{namespace})
	if err == nil {
		name := store.naming(s.component).name(s.nextGeneration(), 0)
		err = store.options.Client.Create(ctx, store.newSecret(s.component, namespace, name, 0, nil), client.DryRunAll, client.FieldOwner(store.options.FieldOwner))
	}
	store.mu.Lock()
	defer store.mu.Unlock()
	switch {
	case apierrors.IsForbidden(err) && !apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		store.forbidden[namespace] = time.Now()
		logf.FromContext(ctx).Error(err, "the inventory stays in the status, although it is large: grant the operator the rights on Secrets", "namespace", namespace)
		return true, nil
	case err != nil && !apierrors.IsForbidden(err) && !apierrors.IsAlreadyExists(err):
		return false, fmt.Errorf("find out whether Secrets may be kept in namespace %s: %w", namespace, err)
	}
	delete(store.forbidden, namespace)
	return false, nil
}

// parallelism is how many Secrets are written at once.
const parallelism = 8

// parallel calls f for 0 to n-1, and returns the first error.
func parallel(n int, f func(i int) error) error {
	var group errgroup.Group
	group.SetLimit(parallelism)
	for i := range n {
		group.Go(func() error { return f(i) })
	}
	return group.Wait()
}

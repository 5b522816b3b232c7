// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inventory

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/report"
)

// Options configure a Store.
type Options struct {
	// Client reads from the server and writes, with the identity of the operator.
	Client client.Client
	// Name is the name of the reconciler: the prefix of labels, of the
	// finalizer and of the type of the Secrets.
	Name string
	// FieldOwner is the field manager of the writes.
	FieldOwner string
	// Namespace is where the Secrets of components without a namespace are kept.
	Namespace string
	// Only is the only namespace that the operator has rights in; empty: it may have rights in
	// other ones.
	Only string
	// Threshold is how large the items may be, in bytes of JSON, before they
	// move to Secrets. Defaults to DefaultThreshold.
	Threshold int
}

// Store keeps the inventories of the components of one reconciler. It is safe
// for concurrent use; one caller at a time works on one component.
type Store struct {
	options Options
	reader  client.Reader // of the options
	limits  limits

	mu sync.Mutex
	// cache holds the last known state of each component.
	cache map[client.ObjectKey]cacheEntry
	// forbidden is when the server last refused, for a namespace, to keep Secrets there.
	forbidden map[string]time.Time
}

// Component identifies the component that an inventory belongs to.
type Component struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Deleting: the component is being deleted. Then the inventory only shrinks,
	// and no Secret is created.
	Deleting bool
}

// String is how messages name it: "Kind namespace/name".
func (c Component) String() string {
	return report.Key{Kind: c.Kind, Namespace: c.Namespace, Name: c.Name}.String()
}

func (c Component) key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// Commit makes the given form of the inventory durable in the status.
type Commit func(ctx context.Context, stored v1alpha1.Inventory) error

// NewStore returns a Store.
func NewStore(options Options) *Store {
	if options.Threshold <= 0 {
		options.Threshold = DefaultThreshold
	}
	return &Store{options: options, reader: options.Client, limits: limitsFor(options.Threshold), cache: map[client.ObjectKey]cacheEntry{}, forbidden: map[string]time.Time{}}
}

// Of returns a Store for the inventories that another reconciler keeps for components of the same type.
func (s *Store) Of(reconciler string) *Store {
	options := s.options
	options.Name = reconciler
	return NewStore(options)
}

// FormatError means that a newer version wrote the inventory.
type FormatError struct{ Format int32 }

// Error tells the user to use a newer version.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the inventory in the status has format %d, and this version of the operator knows %d at most; use a newer version",
		e.Format, v1alpha1.InventoryFormat)
}

// cacheEntry is the inventory of a component as it was read or written last. It saves
// reading the Secrets again as long as no other client changes them.
type cacheEntry struct {
	component Component
	head      v1alpha1.InventoryChunks
	items     []v1alpha1.InventoryItem
	secrets   []secret
	// clean: no Secrets are left to be removed.
	clean bool
}

// isOf reports whether the entry has the inventory of that very component under that head.
func (e cacheEntry) isOf(component Component, head v1alpha1.InventoryChunks) bool {
	return e.component.UID == component.UID && equality.Semantic.DeepEqual(e.head, head)
}

// cached returns the cache entry of a component, or of an earlier one of its name.
func (s *Store) cached(key client.ObjectKey) (cacheEntry, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	entry, ok := s.cache[key]
	return entry, ok
}

func (s *Store) setCached(entry cacheEntry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cache[entry.component.key()] = entry
}

// dropCached drops the cache entry of the very component, not of another one of its name.
func (s *Store) dropCached(c Component) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cache[c.key()].component.UID == c.UID {
		delete(s.cache, c.key())
	}
}

// Items returns the items of an inventory, if they are cached or in the status.
func (s *Store) Items(c Component, stored v1alpha1.Inventory) (items []v1alpha1.InventoryItem, known bool) {
	if stored.Chunks == nil || stored.Chunks.Current == 0 {
		return stored.Items, true
	}
	entry, ok := s.cached(c.key())
	if !ok || !entry.isOf(c, *stored.Chunks) {
		return nil, false
	}
	return entry.items, true
}

// OpenCached is Open without a request: it returns false if the Secrets have to be
// read. If another client has changed them since they were read, the next write of one
// of them fails, and Open reads them again.
func (s *Store) OpenCached(c Component, stored v1alpha1.Inventory) (*Snapshot, bool) {
	entry, ok := s.cached(c.key())
	if !ok || stored.Chunks == nil || stored.Format > v1alpha1.InventoryFormat || checkHead(stored.Chunks) != nil ||
		!entry.clean || !entry.isOf(c, *stored.Chunks) {
		return nil, false
	}
	snapshot := &Snapshot{store: s, component: c, stored: stored, items: validItems(stored.Items)}
	if stored.Chunks.Current > 0 {
		snapshot.items, snapshot.secrets = entry.items, slices.Clone(entry.secrets)
	}
	return snapshot, true
}

// Open reads the inventory of a component, from the head in its status. An inventory in the status
// itself costs no request. A part that is lost or does not match the head is a loss of the
// Snapshot; an error means that the inventory is unknown, or that Secrets of an earlier component
// of that name are still to be removed.
func (s *Store) Open(ctx context.Context, c Component, stored v1alpha1.Inventory) (*Snapshot, error) {
	if stored.Format > v1alpha1.InventoryFormat {
		return nil, &FormatError{Format: stored.Format}
	}
	if err := s.erasePredecessor(ctx, c); err != nil {
		return nil, err
	}
	snapshot := &Snapshot{store: s, component: c, stored: stored, items: validItems(stored.Items)}
	if stored.Chunks == nil {
		return snapshot, nil
	}
	if err := checkHead(stored.Chunks); err != nil {
		snapshot.unreadable = err
		snapshot.lost = []Loss{{Index: -1, Why: err.Error()}}
		listed, err := s.listSecrets(ctx, c, snapshot.namespaces())
		snapshot.setUnreferenced(listed)
		return snapshot, err
	}
	if entry, ok := s.cached(c.key()); ok && entry.isOf(c, *stored.Chunks) {
		if same, err := snapshot.confirm(ctx, entry); same || err != nil {
			return snapshot, err
		}
	}
	s.dropCached(c)
	if err := snapshot.read(ctx); err != nil {
		return nil, err
	}
	snapshot.cache()
	return snapshot, nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Options configure a Ledger.
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
	// Threshold is how large the items may be, in bytes of JSON, before they
	// move to Secrets. Defaults to DefaultThreshold.
	Threshold int
}

// Ledger keeps the inventories of the components of one reconciler. It is safe
// for concurrent use; one component is worked on by one caller at a time.
type Ledger struct {
	options Options
	limits  limits

	mu    sync.Mutex
	known map[client.ObjectKey]knowledge
	// refused is when it turned out, for a namespace, that no Secrets may be kept there.
	refused map[string]time.Time
}

// Component identifies whose record it is.
type Component struct {
	APIVersion, Kind, Namespace, Name string
	UID                               types.UID
	// Deleting: the component is being deleted. Then the record only shrinks,
	// and no Secret is created.
	Deleting bool
}

// Commit makes the given form of the record durable in the status.
type Commit func(ctx context.Context, stored v1alpha1.Inventory) error

// New returns a Ledger.
func New(options Options) *Ledger {
	if options.Threshold <= 0 {
		options.Threshold = DefaultThreshold
	}
	return &Ledger{options: options, limits: limitsFor(options.Threshold), known: map[client.ObjectKey]knowledge{}, refused: map[string]time.Time{}}
}

// FormatError means that a newer version wrote the record.
type FormatError struct{ Format int32 }

// Error says what to do.
func (e *FormatError) Error() string {
	return fmt.Sprintf("the inventory in the status has format %d, and this version of the operator knows %d at most; use a newer version",
		e.Format, v1alpha1.InventoryFormatChunked)
}

// knowledge is what was found or written last; it saves reading the Secrets again
// as long as nobody else changes them.
type knowledge struct {
	component Component
	head      v1alpha1.InventoryChunks
	items     []v1alpha1.InventoryItem
	secrets   []secret
	// clean: no Secrets are left to be removed.
	clean bool
}

// String is how messages name it: "Kind namespace/name".
func (c Component) String() string {
	if c.Namespace == "" {
		return c.Kind + " " + c.Name
	}
	return fmt.Sprintf("%s %s/%s", c.Kind, c.Namespace, c.Name)
}

func (c Component) key() client.ObjectKey {
	return client.ObjectKey{Namespace: c.Namespace, Name: c.Name}
}

// recall returns what is known about a component, or about an earlier one of its name.
func (l *Ledger) recall(key client.ObjectKey) (knowledge, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	k, ok := l.known[key]
	return k, ok
}

// Items are the items of a record, as far as that is known without a request.
func (l *Ledger) Items(c Component, stored v1alpha1.Inventory) (items []v1alpha1.InventoryItem, known bool) {
	if stored.Chunks == nil || stored.Chunks.Current == 0 {
		return stored.Items, true
	}
	k, ok := l.recall(c.key())
	if !ok || k.component.UID != c.UID || !equality.Semantic.DeepEqual(k.head, *stored.Chunks) {
		return nil, false
	}
	return k.items, true
}

func (l *Ledger) remember(k knowledge) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.known[k.component.key()] = k
}

// forget drops what is known about the very component, not about another one of its name.
func (l *Ledger) forget(c Component) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known[c.key()].component.UID == c.UID {
		delete(l.known, c.key())
	}
}

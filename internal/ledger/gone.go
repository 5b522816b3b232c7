// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"context"
	"fmt"

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

// Look tells what has become of a component, by reading from the server.
type Look func(ctx context.Context, c Component) (Fate, error)

// free removes the Secrets of a component that does not exist any more. Usually they
// went before it; if somebody took its finalizer away, our finalizer on them would keep
// them, and their namespace, forever. Those that cannot be removed now are remembered,
// unless that is for good.
func (l *Ledger) free(ctx context.Context, key client.ObjectKey) error {
	known, ok := l.recall(key)
	if !ok {
		return nil
	}
	head := known.head
	err := l.Erase(ctx, known.component, v1alpha1.Inventory{Chunks: &head})
	if err == nil || isDenied(err) {
		l.forget(known.component)
	} else {
		l.remember(known)
	}
	return err
}

// succeed frees the Secrets of an earlier component of the same name. After an error
// it is to be called again, before anything is remembered about the component: what was
// known about the other one would be lost. What we must not do holds up nobody.
func (l *Ledger) succeed(ctx context.Context, c Component) error {
	known, ok := l.recall(c.key())
	if !ok || known.component.UID == c.UID {
		return nil
	}
	err := l.free(ctx, c.key())
	if isDenied(err) {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory outlive their component")
		return nil
	}
	if err != nil {
		return fmt.Errorf("free the Secrets of the inventory of an earlier %s, which is gone: %w", c, err)
	}
	return nil
}

// Left says that a component is not seen any more, or does not bear our finalizer any
// more while it is being deleted. Look tells what has become of it, by reading from
// the server. What is known about it is kept until its Secrets are removed, because it
// is gone, or it belongs to another process. After an error Left is to be called again;
// it gives up on what we must not read or write, which Orphans may make up for.
func (l *Ledger) Left(ctx context.Context, key client.ObjectKey, look Look) error {
	known, ok := l.recall(key)
	if !ok {
		return nil
	}
	fate, err := look(ctx, known.component)
	switch {
	case err == nil && fate == Vanished:
		err = l.free(ctx, key)
	case err == nil && fate == Elsewhere, isDenied(err):
		l.forget(known.component)
	}
	if isDenied(err) {
		logf.FromContext(ctx).Error(err, "Secrets of the inventory may outlive their component")
		return nil
	}
	if err != nil {
		return fmt.Errorf("free the Secrets of the inventory of %s, if it is gone: %w", known.component, err)
	}
	return nil
}

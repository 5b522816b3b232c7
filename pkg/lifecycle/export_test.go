// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/session"
)

// NewReconcilerOf returns a Reconciler with sessions that have more options than those of users.
func NewReconcilerOf[T client.Object](handler Handler[T], options session.Options[T]) (*Reconciler[T], error) {
	sessions, err := session.New(options)
	return &Reconciler[T]{handler: handler, sessions: sessions}, err
}

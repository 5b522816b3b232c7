// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"time"

	"github.com/corbel-run/corbel/internal/sentence"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// fluxRequestedAt is the annotation by which Flux asks for a reconcile.
const fluxRequestedAt = vocabulary.AnnotationReconcileRequestedAt

// maxReconcileAt is how much of the value of such an annotation is recorded, in bytes.
//
// Unit: bytes
// Limit: the value of the annotation reconcile-at that the status records; the rest is cut.
const maxReconcileAt = 128

// reconcileAt returns the request of a user for a reconcile. Of two it is the later, and what
// is no time in the form of RFC 3339 counts as earlier than any.
func (o *opener) reconcileAt(obj Component) string {
	own, flux := o.self.Value(obj, vocabulary.AnnotationReconcileAt), obj.GetAnnotations()[fluxRequestedAt]
	at := func(text string) time.Time {
		t, _ := time.Parse(time.RFC3339, text) // zero if it is none
		return t
	}
	if own == "" || at(flux).After(at(own)) {
		own = flux
	}
	return sentence.Shorten(own, maxReconcileAt)
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"time"

	"github.com/corbel-run/corbel/internal/renders"
)

// NoteRandom is called by generators that use a random value. The fields of the objects that come
// from it keep their values for the whole revision of a component: the generator is called more
// than once, and the differing fields are random. The objects have to be of the type
// unstructured.Unstructured for that. The generators of Go templates and of charts call NoteRandom
// for functions such as randAlphaNum and genCA.
func NoteRandom(ctx context.Context) { renders.RandomnessOf(ctx).Values.Store(true) }

// Now returns the time that a generator takes for the current one, and notes that it was used. For
// a component it is the time at which its revision was first rendered, so that the objects stay the
// same. If the context holds none, it is the time of the clock.
func Now(ctx context.Context) time.Time {
	renders.RandomnessOf(ctx).Time.Store(true)
	if now, ok := renders.Time(ctx); ok {
		return now
	}
	return time.Now()
}

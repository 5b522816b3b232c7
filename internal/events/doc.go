// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package events sends events of the API events.k8s.io: few, short and whole.
//
// The API server refuses an event whose parts are too long, and nobody would
// notice; so a [Recorder] of this package makes every event acceptable. Whoever has
// much to say at once, such as that a thousand objects were adopted, collects it
// and lets [Send] fold it into a few events.
package events

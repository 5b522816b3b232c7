// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package events sends events of the API events.k8s.io: few, short and whole.
//
// The API server refuses an event with parts that are too long, without an error to
// the sender; so a [Recorder] of this package makes every event acceptable. A caller with
// many events at once, such as a thousand adopted objects, collects them
// and lets [Send] send a few.
package events

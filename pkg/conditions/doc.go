// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package conditions reads and writes the conditions of an object, in one model:
// [metav1.Condition] with observedGeneration.
//
// Three types have a meaning that other tools share. Ready is True when the object does its work.
// Reconciling is True while work towards that goes on and absent otherwise; Stalled is True when no
// progress is possible until a user changes something and absent otherwise; the two exclude each
// other.
//
// An object implements [Setter]; where the conditions live
// elsewhere, [For] adapts object and slice. [Set] and the Mark functions keep the
// invariants: the generation is stamped, the time of the last transition changes
// with the status only, messages are bounded, the order is stable, so that the
// same facts always give the same bytes and nothing is written without need.
//
// [SetSummary] condenses several conditions into one, usually Ready. [Merge] unites our conditions
// with the conditions of another client that wrote at the same time.
//
// The package holds data only: it knows no client. The time of a transition is the time
// at which Set or a Mark function is called.
package conditions

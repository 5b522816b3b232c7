// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package plan decides about the dependent objects of a component. It is the only place where such
// decisions are made.
//
// Next is a pure function: from the desired objects, the recorded inventory and the live
// observations it computes the next batch of work, the record that must be durable before that work
// starts, and the objects to wait for. The caller records, executes, folds the results back with
// Fold, and asks again, until a plan has no steps.
//
//	desired ─┐
//	recorded ├─ Next ─ Plan{Inventory, MustRecord, Steps, Waiting, Notes}
//	live ────┘
//
// An object is written only if it is absent, ours, or may be adopted; it is deleted only if it is
// recorded and shows that it is ours. An object that could not be read is Unknown, and nothing
// destructive follows from Unknown.
//
// Objects are applied in waves (apply-order) and, inside a wave, in stages by kind. The stages
// order the writes; readiness gates the waves, the late stage (API services and admission webhooks)
// and the instances of managed types. Deletion goes through waves (delete-order) and stages of its
// own; there each stage waits until the one before is gone.
//
// The package holds no client, no context and no clock, and its imports cannot.
package plan

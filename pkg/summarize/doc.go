// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package summarize is the one exit of a pass. It takes the object, the abstract
// result and the error, and makes conditions, status, events, the requeue and the
// returned error from them, so that these cannot disagree.
//
// [Helper.SummarizeAndPatch] goes these steps: the processors look at the raw
// result; [ComputeReconcileResult] applies the truth table of pkg/result to
// Reconciling and Stalled; the summaries of [WithConditions] are set; everything is
// written at once, if anything changed; transitions of Ready become events.
//
// With the helper, the object and no options it only writes.
package summarize

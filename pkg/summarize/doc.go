// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package summarize is the one exit of a reconcile. It takes the object, the abstract
// result and the error, and makes conditions, status, events, the requeue and the
// returned error from them, so that these cannot disagree.
//
// [Helper.SummarizeAndPatch] goes these steps: the processors look at the raw
// result; [ComputeReconcileResult] applies the truth table of pkg/result to
// Reconciling and Stalled; the summaries of [WithConditions] are set; everything is
// written at once, if anything changed; transitions of Ready become events.
//
// With the helper, the object and no options it only writes.
//
// A summary that contradicts the result wins: if a reconcile returns Success and a condition that
// Ready depends on is bad news, then the reconcile has failed with that condition's reason and
// message, and is retried like any failure.
//
// # Differences from Flux
//
// The model is documented by Flux for its controllers; pkg/result lists the differences of the
// truth table. Of the rest these are different on purpose:
//
//   - Ready follows from the verdict where there is nothing to summarise, and a Ready that
//     is left over from better times does not survive a failure. There, it stays.
//   - Metadata and status are written at most once each. There, the conditions and the rest of the
//     status are separate requests, so that other clients see half of an outcome.
//   - A write that conflicts with a change of another client ends the reconcile without an
//     error, and the object is requeued soon.
//   - [Helper.SummarizeAndPatch] adds Reconciling, with reason and message of Ready, where Ready
//     becomes Unknown for another reason than Suspended and the object is not Stalled. Tools that
//     follow kstatus take an object without Reconciling as current.
//   - The reason of Reconciling stays as the reconciler set it. There, it is replaced.
//   - The generation is observed also if the object has no condition, and not if the
//     summary contradicts the result.
//   - The recorder is the one of k8s.io/client-go/tools/events; [FromRecorder] adapts the older one.
package summarize

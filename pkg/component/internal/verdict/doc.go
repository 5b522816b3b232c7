// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package verdict computes the state of a component, its conditions and the result for the
// controller from the facts of a reconcile.
//
// [Evaluate] is pure: the same [Facts] give the same [Verdict], and the table of its test is the
// specification. Errors of the engine get their meaning here. Messages name the objects that
// a component waits for; [FailureReasons] asks the pods of a workload why it is not ready;
// internal/pods has the words.
package verdict

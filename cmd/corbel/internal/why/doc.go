// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package why finds the cause for which a component is not ready: the object that is to blame, the field,
// since when, what is held back by it, and the next command to type.
//
// [Explain] is pure: it maps [Facts], which are the component and answers to questions, to a [Chain] and
// to the questions that are open. [Collector] asks these, at most [MaxRequests] in number, and explains again.
// What may not be read is listed in the chain, with the right that is missing.
//
// The starting point is the message of the condition Ready, because the operator says there for which of
// its dependents it waits. Everything else is read from the cluster, so the operator need not run.
package why

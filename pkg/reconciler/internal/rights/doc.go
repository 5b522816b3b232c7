// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rights finds out which rights a user or service account lacks to apply a set of
// objects and to remove it again.
//
// [Of] derives the rights from the objects and their policies; it is pure. A [Reviewer]
// asks the server: one SelfSubjectRulesReview lists what the user holds in the whole
// cluster, one more for each namespace what it holds there. Where the server says that the
// list is not complete, because authorizers need not list what they allow, each right
// that is not listed is asked by a SelfSubjectAccessReview. What is allowed is remembered, so that
// an installation costs one or two requests and everything after it none. What is denied
// is asked again before each report.
//
// The result is a report. No write depends on it: the server itself decides about each.
package rights

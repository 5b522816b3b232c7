// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the values of Secrets out of conditions, events, logs, errors
// and spans.
//
// The engine does not repeat values: its messages name objects and fields. But hooks,
// generators and API servers write texts, too. [Secrets] is the set of values that one
// reconcile has read or rendered; it lives in the context and ends with the reconcile.
// Texts go through [Secrets.Text] before they are shortened. Values are found also in
// the forms that they take in messages: quoted, escaped, in base64, as part of a URL,
// and cut off at the end. What looks like a credential is hidden even if it is not in
// the set: bearer tokens, Authorization headers, user information in URLs, private keys.
package redact

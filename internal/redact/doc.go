// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package redact keeps the values of Secrets out of what is told: conditions,
// events, logs, errors and spans.
//
// [Secrets] is the set of values that a pass has met. Whoever reads or renders a
// Secret adds to it; whoever tells something sends the text through
// [Secrets.Text] before it is shortened. Values are found also in the forms that they
// take in messages: quoted, escaped, in base64, as part of a URL, and cut off at the end.
// What looks like a credential is hidden even if nobody has met it: bearer tokens,
// Authorization headers, user information in URLs, private keys.
//
// The set travels in the context, so that no function needs a parameter for it.
package redact

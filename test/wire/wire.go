// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import "net/http"

// roundTripper is a function that sends requests through another transport.
type roundTripper struct {
	next http.RoundTripper
	send func(*http.Request) (*http.Response, error)
}

// Through returns a transport that sends requests as the function does, which sends
// them through next, or not at all.
func Through(next http.RoundTripper, send func(*http.Request) (*http.Response, error)) http.RoundTripper {
	return &roundTripper{next: next, send: send}
}

// RoundTrip calls the function.
func (t *roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return t.send(r) }

// WrappedRoundTripper lets clients find their connections: code that closes idle ones asks
// every transport for the one below it.
func (t *roundTripper) WrappedRoundTripper() http.RoundTripper { return t.next }

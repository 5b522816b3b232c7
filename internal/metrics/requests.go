// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package metrics

import (
	"net/http"
	"strconv"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

var requests = counter("corbel_requests_total",
	"Requests to API servers, by verb and class of the answer: 2xx, 3xx, 4xx, 5xx, or error if there was none.", "verb", "code")

// CountRequests returns a transport that counts the requests that go through it.
// Requests that the client repeats count again.
func CountRequests(next http.RoundTripper) http.RoundTripper {
	if next == nil {
		next = http.DefaultTransport
	}
	return &counting{next}
}

type counting struct{ next http.RoundTripper }

func (c *counting) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := c.next.RoundTrip(request)
	requests.WithLabelValues(verbOf(request), codeOf(response, err)).Inc()
	return response, err
}

// CloseIdleConnections lets http.Client find the transport below.
func (c *counting) CloseIdleConnections() { utilnet.CloseIdleConnectionsFor(c.next) }

// WrappedRoundTripper returns the transport below.
func (c *counting) WrappedRoundTripper() http.RoundTripper { return c.next }

func codeOf(response *http.Response, err error) string {
	if err != nil || response == nil {
		return "error"
	}
	return strconv.Itoa(response.StatusCode/100) + "xx"
}

// verbOf is the verb in the words of the API server, without telling get from list.
func verbOf(request *http.Request) string {
	switch request.Method {
	case http.MethodGet, "":
		if watch := request.URL.Query().Get("watch"); watch == "true" || watch == "1" {
			return "watch"
		}
		return "read"
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		if request.Header.Get("Content-Type") == "application/apply-patch+yaml" {
			return "apply"
		}
		return "patch"
	case http.MethodDelete:
		return "delete"
	default:
		return "other"
	}
}

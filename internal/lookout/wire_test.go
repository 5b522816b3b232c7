// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lookout

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wire is the connection of a Lookout to the server.
type wire struct {
	next http.RoundTripper
	// answer may answer a request in place of the server.
	answer func(*http.Request) *http.Response

	mu       sync.Mutex
	received bytes.Buffer
	watches  int
	bodies   []io.Closer
}

func (w *wire) RoundTrip(request *http.Request) (*http.Response, error) {
	if w.answer != nil {
		if response := w.answer(request); response != nil {
			return response, nil
		}
	}
	response, err := w.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if request.URL.Query().Get("watch") != "" {
		w.watches++
		w.bodies = append(w.bodies, response.Body)
	}
	response.Body = struct {
		io.Reader
		io.Closer
	}{io.TeeReader(response.Body, w), response.Body}
	return response, nil
}

func (w *wire) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.received.Write(p)
}

// cut ends all watches in the middle.
func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, body := range w.bodies {
		_ = body.Close()
	}
	w.bodies = nil
}

// status is an answer of a server that refuses.
func status(request *http.Request, code int, reason metav1.StatusReason) *http.Response {
	text := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d}`, reason, code)
	return &http.Response{
		StatusCode: code, Header: http.Header{"Content-Type": {"application/json"}}, Request: request,
		Body: io.NopCloser(strings.NewReader(text)), ContentLength: int64(len(text)),
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"io"
	"net/http"
	"path"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/corbel-run/corbel/test/wire"
)

var reasons = map[int]string{http.StatusForbidden: "Forbidden", http.StatusTooManyRequests: "TooManyRequests"}

// refuser is in front of a server and refuses patches of Secrets.
type refuser struct {
	refused atomic.Int64

	mu    sync.Mutex
	codes map[string]int
}

// refuse answers with the code whoever patches the Secret of that name, or any Secret if
// it is empty; 0 lets him pass.
func (f *refuser) refuse(code int, name string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.codes == nil {
		f.codes = map[string]int{}
	}
	f.codes[name] = code
}

func (f *refuser) codeFor(name string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return max(f.codes[name], f.codes[""])
}

func (f *refuser) wrap(next http.RoundTripper) http.RoundTripper {
	return wire.Through(next, func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPatch || !strings.Contains(r.URL.Path, "/secrets/") {
			return next.RoundTrip(r)
		}
		code := f.codeFor(path.Base(r.URL.Path))
		if code == 0 {
			return next.RoundTrip(r)
		}
		f.refused.Add(1)
		return refusal(r, code), nil
	})
}

// refusal is what a server answers that refuses a request.
func refusal(r *http.Request, code int) *http.Response {
	body := fmt.Sprintf(`{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"message":"not you, or not now","code":%d}`, reasons[code], code)
	return &http.Response{
		StatusCode: code, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}
}

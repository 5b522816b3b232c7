// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Storm puts random faults between a client and a server: requests and answers that
// are lost, delayed, cut off, refused or sent twice, and watches that break. It starts
// calm. It is safe for concurrent use.
type Storm struct {
	mu     sync.Mutex
	random *rand.Rand
	rages  bool
	seen   int
	faults map[fault]int
}

// NewStorm returns a Storm with faults that follow from the seed and from the order in
// which requests are made.
func NewStorm(seed uint64) *Storm {
	return &Storm{random: rand.New(rand.NewPCG(seed, 2)), faults: map[fault]int{}}
}

// fault is what happens to a request.
type fault string

const (
	none          fault = ""
	requestLost   fault = "request lost"
	answerLost    fault = "answer lost"
	answerCut     fault = "answer cut off"
	delayed       fault = "delayed"
	sentTwice     fault = "sent twice"
	watchBroken   fault = "watch broken"
	tooMany       fault = "429"
	internalError fault = "500"
	unavailable   fault = "503"
	conflict      fault = "409"
)

// chances are how many of a thousand requests meet a fault.
var chances = []struct {
	fault
	of1000 int
}{
	{requestLost, 6}, {answerLost, 8}, {answerCut, 5}, {delayed, 10}, {sentTwice, 6},
	{tooMany, 5}, {internalError, 5}, {unavailable, 7}, {conflict, 4},
}

var refusals = map[fault]struct {
	code   int
	reason metav1.StatusReason
}{
	tooMany:       {http.StatusTooManyRequests, metav1.StatusReasonTooManyRequests},
	internalError: {http.StatusInternalServerError, metav1.StatusReasonInternalError},
	unavailable:   {http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable},
	conflict:      {http.StatusConflict, metav1.StatusReasonConflict},
}

const (
	longestDelay = 3 * time.Second
	// longestWatch is how long a watch lasts at most while the Storm rages.
	longestWatch = 15 * time.Second
)

// errLost is what is seen of a connection that is lost.
var errLost = errors.New("the connection is lost")

// Rage starts or ends the Storm.
func (s *Storm) Rage(rages bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rages = rages
}

// String counts the requests and the faults.
func (s *Storm) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	total, parts := 0, []string(nil)
	for _, name := range slices.Sorted(maps.Keys(s.faults)) {
		total += s.faults[name]
		parts = append(parts, fmt.Sprintf("%s %d", name, s.faults[name]))
	}
	return fmt.Sprintf("%d requests, %d faults (%s)", s.seen, total, strings.Join(parts, ", "))
}

// choose returns the fault of a request, and a random part of its time.
func (s *Storm) choose(r *http.Request) (fault, float64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen++
	if !s.rages {
		return none, 0
	}
	chosen, part := none, s.random.Float64()
	write := r.Method != http.MethodGet
	if watch := r.URL.Query().Get("watch"); watch == "true" || watch == "1" {
		chosen = watchBroken
	} else {
		for n, i := s.random.IntN(1000), 0; i < len(chances) && n >= 0; i++ {
			if n -= chances[i].of1000; n < 0 {
				chosen = chances[i].fault
			}
		}
	}
	if !write && (chosen == conflict || chosen == sentTwice) {
		chosen = none
	}
	if chosen != none {
		s.faults[chosen]++
	}
	return chosen, part
}

// Wrap puts the Storm before a transport.
func (s *Storm) Wrap(next http.RoundTripper) http.RoundTripper {
	return Through(next, func(r *http.Request) (*http.Response, error) {
		chosen, part := s.choose(r)
		if refusal, refused := refusals[chosen]; refused {
			return Refuse(r, refusal.code, refusal.reason)
		}
		switch chosen {
		case requestLost:
			return nil, errLost
		case delayed:
			select {
			case <-r.Context().Done():
				return nil, r.Context().Err()
			case <-time.After(time.Duration(part * float64(longestDelay))):
			}
		case sentTwice:
			return twice(next, r)
		}
		response, err := next.RoundTrip(r)
		if err != nil {
			return response, err
		}
		switch chosen {
		case answerLost:
			_, _ = io.Copy(io.Discard, response.Body)
			return nil, errors.Join(errLost, response.Body.Close())
		case answerCut:
			response.Body = &cutBody{ReadCloser: response.Body, left: int(part * float64(max(response.ContentLength, 100)))}
		case watchBroken:
			body := response.Body
			timer := time.AfterFunc(time.Duration(part*float64(longestWatch)), func() { _ = body.Close() })
			response.Body = &watchBody{ReadCloser: body, timer: timer}
		}
		return response, nil
	})
}

// Refuse answers a request without the server.
func Refuse(r *http.Request, code int, reason metav1.StatusReason) (*http.Response, error) {
	content, err := json.Marshal(Failure(code, reason, nil))
	response := &http.Response{
		Request: r, StatusCode: code, Status: fmt.Sprintf("%d %s", code, http.StatusText(code)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(bytes.NewReader(content)), ContentLength: int64(len(content)),
	}
	if code == http.StatusTooManyRequests {
		response.Header.Set("Retry-After", "1")
	}
	return response, err
}

// twice sends a request, and once more when it is answered; the second answer counts.
func twice(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	var body []byte
	if r.Body != nil {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	send := func() (*http.Response, error) {
		again := r.Clone(r.Context())
		if again.ContentLength = int64(len(body)); len(body) > 0 {
			again.Body = io.NopCloser(bytes.NewReader(body))
		} else {
			again.Body = http.NoBody
		}
		return next.RoundTrip(again)
	}
	first, err := send()
	if err != nil {
		return first, err
	}
	_, _ = io.Copy(io.Discard, first.Body)
	_ = first.Body.Close()
	return send()
}

// cutBody ends before its end.
type cutBody struct {
	io.ReadCloser
	left int
}

func (b *cutBody) Read(p []byte) (int, error) {
	if b.left <= 0 {
		return 0, io.ErrUnexpectedEOF
	}
	n, err := b.ReadCloser.Read(p[:min(len(p), b.left)])
	b.left -= n
	return n, err
}

// watchBody ends when its time has passed.
type watchBody struct {
	io.ReadCloser
	timer *time.Timer
}

func (b *watchBody) Close() error {
	b.timer.Stop()
	return b.ReadCloser.Close()
}

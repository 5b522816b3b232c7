// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestAStormRepeatsItsFaultsAndEndsThem(t *testing.T) {
	faults := func(seed uint64, rages bool) (counts string, arrived int) {
		storm := NewStorm(seed)
		storm.Rage(rages)
		transport := storm.Wrap(Through(nil, func(r *http.Request) (*http.Response, error) {
			arrived++
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(strings.Repeat("x", 1000))), ContentLength: 1000}, nil
		}))
		for range 500 {
			request := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPut, "http://server.invalid/", strings.NewReader("body")))(t)
			if chosen, _ := NewStorm(seed).choose(request); chosen != none {
				t.Errorf("a storm starts with %q", chosen)
			}
			if response, err := transport.RoundTrip(request); err == nil {
				_, _ = io.Copy(io.Discard, response.Body)
			}
		}
		return storm.String(), arrived
	}
	if got, arrived := faults(1, false); got != "500 requests, 0 faults ()" || arrived != 500 {
		t.Errorf("in calm: %s, %d arrived", got, arrived)
	}
	delay := chances[3].of1000
	chances[3].of1000 = 0 // it takes its time
	defer func() { chances[3].of1000 = delay }()
	first, _ := faults(1, true)
	for _, name := range []fault{requestLost, answerLost, tooMany, unavailable} {
		if !strings.Contains(first, string(name)) {
			t.Errorf("no fault %q in %s", name, first)
		}
	}
	if second, _ := faults(1, true); second != first {
		t.Errorf("the seed 1 gives %s and then %s", first, second)
	}
	if other, _ := faults(2, true); other == first {
		t.Errorf("the seeds 1 and 2 both give %s", first)
	}
}

func TestARequestThatIsSentTwiceArrivesWholeBothTimes(t *testing.T) {
	var bodies []string
	server := Through(nil, func(r *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, err
	})
	request := check.Must(http.NewRequestWithContext(t.Context(), http.MethodPost, "http://server.invalid/", strings.NewReader("body")))(t)
	if _, err := twice(server, request); err != nil || len(bodies) != 2 || bodies[0] != "body" || bodies[1] != "body" {
		t.Errorf("%v, the server got %q", err, bodies)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package verdict

import "testing"

func TestTheSameFailureKeepsItsMessage(t *testing.T) {
	tests := []struct {
		name, before, message string
		same                  bool
	}{
		{"another source port", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:40000->127.0.0.1:6443: connection reset", true},
		{"another server", "read tcp 127.0.0.1:38412->127.0.0.1:6443: connection reset", "read tcp 127.0.0.1:38412->127.0.0.1:7443: connection reset", false},
		{"another request", "denied (request 7d444840-9dc0-11d1-b245-5ffdce74fad2)", "denied (request 4f3c1a20-9dc0-11d1-b245-5ffdce74fad2)", true},
		{"another trace", "denied, trace 4bf92f3577b34da6", "denied, trace 00f067aa0ba902b7", true},
		{"another time", "at 2026-01-02T03:04:05Z: no", "at 2026-01-02T03:05:05.123Z: no", true},
		{"another duration", "gave up after 30.001s", "gave up after 29.8s", true},
		{"other numbers", "exceeded quota: used 3, limited 5", "exceeded quota: used 4, limited 5", false},
		{"another object", "ConfigMap shop/a: denied", "ConfigMap shop/b: denied", false},
		{"words of hexadecimal letters", "facade defaced", "defaced facade", false},
		{"nothing before", "", "failed", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			want := test.message
			if test.same {
				want = test.before
			}
			if got := steady(test.before, test.message); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

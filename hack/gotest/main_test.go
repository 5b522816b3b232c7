// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestStatus(t *testing.T) {
	for _, c := range []struct {
		name, script string
		want         int
		out          string
	}{
		{"success", "exit 0", 0, ""},
		{"failure", "exit 1", 1, ""},
		{"a build that fails", `printf "%s\n" '{"Action":"build-output","ImportPath":"a","Output":"a.go:1: undefined: x\n"}'; echo '{"Action":"build-fail","ImportPath":"a"}'; exit 1`, 1, "a.go:1: undefined: x\nFAIL\n"},
		{"a signal", "kill -9 $$", 1, ""},
		{"text that is no event", "echo hello; exit 2", 2, "hello\n"},
		{"a failure that the status does not show", `echo '{"Action":"fail","Package":"a"}'`, 1, "FAIL\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, record bytes.Buffer
			got, err := test([]string{"sh", "-c", c.script}, &out, &record)
			if got != c.want {
				t.Errorf("status is %d (%v), want %d", got, err, c.want)
			}
			if diff := cmp.Diff(c.out, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
		})
	}
}

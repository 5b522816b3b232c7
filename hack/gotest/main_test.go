// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// events are lines of go test -json. Each line of the text is an action, a package,
// a test or "-", and an output or the seconds that it took.
func events(text string) string {
	var lines strings.Builder
	for line := range strings.Lines(text) {
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), " ", 4)
		test := strings.Trim(parts[2], "-")
		if parts[0] == "output" {
			fmt.Fprintf(&lines, `{"Action":"output","Package":%q,"Test":%q,"Output":%q}`+"\n", parts[1], test, parts[3]+"\n")
		} else {
			fmt.Fprintf(&lines, `{"Action":%q,"Package":%q,"Test":%q,"Elapsed":%s}`+"\n", parts[0], parts[1], test, parts[3])
		}
	}
	return lines.String()
}

func TestOutput(t *testing.T) {
	for _, c := range []struct{ name, events, want string }{
		{"a package that passes is one line", `output a TestA === RUN   TestA
output a TestA     a_test.go:1: a log
output a TestA --- PASS: TestA (1.00s)
pass a TestA 1
output a - PASS
output a - ok  	a	1.2s
pass a - 1.2`, "ok  \ta\t1.2s\n"},
		{"a failed test is printed with its failed subtests, in the order of their output", `output a TestA === RUN   TestA
output a TestA/x === RUN   TestA/x
output a TestA/x     a_test.go:1: wrong
output a TestA/x --- FAIL: TestA/x (0.10s)
fail a TestA/x 0.1
output a TestA/y     a_test.go:2: right
output a TestA/y --- PASS: TestA/y (0.10s)
pass a TestA/y 0.1
output a TestA --- FAIL: TestA (0.20s)
fail a TestA 0.2
output a - FAIL
output a - FAIL	a	0.3s
fail a - 0.3`, "    a_test.go:1: wrong\n--- FAIL: TestA/x (0.10s)\n--- FAIL: TestA (0.20s)\nFAIL\nFAIL\ta\t0.3s\n"},
		{"packages that run side by side are not mixed", `output a TestA     a_test.go:1: wrong
output b TestB     b_test.go:1: wrong
output a TestA --- FAIL: TestA (0.20s)
fail a TestA 0.2
output b TestB --- FAIL: TestB (0.20s)
fail b TestB 0.2`, "    a_test.go:1: wrong\n--- FAIL: TestA (0.20s)\n    b_test.go:1: wrong\n--- FAIL: TestB (0.20s)\n"},
		{"a panic ends a test without an event", `output a TestA === RUN   TestA
output a TestA panic: boom
output a - FAIL	a	0.3s
fail a - 0.3`, "panic: boom\nFAIL\ta\t0.3s\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var out, record bytes.Buffer
			p := newPrinter(&out, &record)
			for line := range strings.Lines(events(c.events)) {
				p.print([]byte(line))
			}
			if diff := cmp.Diff(c.want, out.String()); diff != "" {
				t.Errorf("output (-want +got):\n%s", diff)
			}
			if failed := strings.Contains(c.events, "fail "); p.failed != failed {
				t.Errorf("failed is %v, want %v", p.failed, failed)
			}
		})
	}
}

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

func TestSlowest(t *testing.T) {
	record := "1.00\ta\tTestA\n3.00\ta\tTestB\n3.00\ta\tTestB/x\n4.10\ta\t\n5.00\tb\t\n2.00\tb\tTestC\n"
	var out bytes.Buffer
	if err := printSlowest(&out, strings.NewReader(record), 2); err != nil {
		t.Fatal(err)
	}
	want := "\nslowest packages:\n     5.0s  b\n     4.1s  a\n\nslowest tests:\n     3.0s  a TestB\n     2.0s  b TestC\n"
	if diff := cmp.Diff(want, out.String()); diff != "" {
		t.Errorf("output (-want +got):\n%s", diff)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTheOutputOfTestsTellsWhyTheyFail(t *testing.T) {
	const output = `=== RUN   TestLive
=== RUN   TestLive/a
=== RUN   TestLive/a/rights
    operator_tests.go:79: waited 2m0s
        for the component
=== RUN   TestLive/b
--- FAIL: TestLive (3.00s)
    --- FAIL: TestLive/a (2.00s)
        --- FAIL: TestLive/a/rights (1.00s)
    --- PASS: TestLive/b (0.50s)
FAIL
`
	want := map[string]verdict{
		"TestLive": {"", "3.00"}, "TestLive/a": {"", "2.00"}, "TestLive/b": {"ok", "0.50"},
		"TestLive/a/rights": {"operator_tests.go:79: waited 2m0s for the component", "1.00"},
	}
	if diff := cmp.Diff(want, verdictsOf(output), cmp.AllowUnexported(verdict{})); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

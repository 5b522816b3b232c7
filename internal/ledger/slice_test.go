// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package ledger

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// inSlice tells whether a case of an enumeration is run, like the function of the
// same name in test/e2e: one in N, by CORBEL_SLICE=1/N and CORBEL_SLICE_OFFSET.
func inSlice(t *testing.T, index int) bool {
	t.Helper()
	n, offset := 8, 0
	if slice := os.Getenv("CORBEL_SLICE"); slice != "" {
		if _, err := fmt.Sscanf(slice, "1/%d", &n); err != nil || n < 1 {
			t.Fatalf("CORBEL_SLICE=%s: must have the form 1/N", slice)
		}
	}
	if text := os.Getenv("CORBEL_SLICE_OFFSET"); text != "" {
		var err error
		if offset, err = strconv.Atoi(text); err != nil {
			t.Fatalf("CORBEL_SLICE_OFFSET=%s: must be a number", text)
		}
	}
	return (index+index/n+offset)%n == 0
}

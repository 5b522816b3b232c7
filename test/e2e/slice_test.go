// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// inSlice tells whether a case of an enumeration is run: every one, or one in N of
// them, chosen by the environment (CORBEL_SLICE=1/N, CORBEL_SLICE_OFFSET).
func inSlice(t *testing.T, index int) bool {
	t.Helper()
	n := 8
	if slice := os.Getenv("CORBEL_SLICE"); slice != "" {
		if _, err := fmt.Sscanf(slice, "1/%d", &n); err != nil || n < 1 {
			t.Fatalf("CORBEL_SLICE=%s: must have the form 1/N", slice)
		}
	}
	offset := 0
	if text := os.Getenv("CORBEL_SLICE_OFFSET"); text != "" {
		var err error
		if offset, err = strconv.Atoi(text); err != nil {
			t.Fatalf("CORBEL_SLICE_OFFSET=%s: must be a number", text)
		}
	}
	// The second term moves the pattern along, so that cases that differ by a
	// multiple of N do not always go together.
	return (index+index/n+offset)%n == 0
}

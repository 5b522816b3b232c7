// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// slice returns which cases of an enumeration are run: every one, or one in N
// of them, chosen by the environment (CORBEL_SLICE=1/N, CORBEL_SLICE_OFFSET).
func slice(t *testing.T) (in func(index int) bool) {
	t.Helper()
	n, offset := 8, 0
	if text := os.Getenv("CORBEL_SLICE"); text != "" {
		if _, err := fmt.Sscanf(text, "1/%d", &n); err != nil || n < 1 {
			t.Fatalf("CORBEL_SLICE=%s: must have the form 1/N", text)
		}
	}
	if text := os.Getenv("CORBEL_SLICE_OFFSET"); text != "" {
		var err error
		if offset, err = strconv.Atoi(text); err != nil {
			t.Fatalf("CORBEL_SLICE_OFFSET=%s: must be a number", text)
		}
	}
	return func(index int) bool { return (index+index/n+offset)%n == 0 }
}

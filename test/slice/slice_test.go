// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"strconv"
	"testing"
)

func TestEveryCaseIsInExactlyOneOfNSlices(t *testing.T) {
	for _, n := range []string{"", "1/1", "1/3", "1/32"} {
		size := map[string]int{"": 32, "1/1": 1, "1/3": 3, "1/32": 32}[n]
		for index := range 200 {
			in := 0
			for offset := range size {
				s, err := parse(n, strconv.Itoa(offset))
				if err != nil {
					t.Fatal(err)
				}
				if s.Has(index) {
					in++
				}
			}
			if in != 1 {
				t.Errorf("CORBEL_SLICE=%s: case %d is in %d slices", n, index, in)
			}
		}
	}
}

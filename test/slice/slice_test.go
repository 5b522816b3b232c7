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

func TestACaseIsRunInOneVariantOrInAllIfTheSliceIsWhole(t *testing.T) {
	seen := map[int]bool{}
	for offset := range 40 {
		part, whole := Slice{n: 8, offset: offset}, Slice{n: 1, offset: offset}
		var picked []int
		for variant := range 5 {
			if part.Picks(7, variant, 5) {
				picked = append(picked, variant)
			}
			if !whole.Picks(7, variant, 5) {
				t.Errorf("offset %d: the whole lacks variant %d", offset, variant)
			}
		}
		if len(picked) != 1 {
			t.Fatalf("offset %d: got variants %v, want one", offset, picked)
		}
		seen[picked[0]] = true
	}
	if len(seen) != 5 {
		t.Errorf("only the variants %v were ever picked", seen)
	}
}

func TestWhatIsNoSliceIsRefused(t *testing.T) {
	for _, variables := range [][2]string{{"1/0", ""}, {"1/x", ""}, {"2/8", ""}, {"1/8x", ""}, {"1/-8", ""}, {"1/8", "x"}, {"1/8", "-1"}} {
		if s, err := parse(variables[0], variables[1]); err == nil {
			t.Errorf("CORBEL_SLICE=%s CORBEL_SLICE_OFFSET=%s: got %+v", variables[0], variables[1], s)
		}
	}
}

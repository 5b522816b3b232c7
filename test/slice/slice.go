// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package slice

import (
	"fmt"
	"os"
	"strconv"
	"testing"
)

// Slice is one in N of the cases of an enumeration.
type Slice struct{ n, offset int }

// FromEnvironment returns the slice that the environment asks for. A variable that
// cannot be read fails the test.
func FromEnvironment(t testing.TB) Slice {
	t.Helper()
	s, err := parse(os.Getenv("CORBEL_SLICE"), os.Getenv("CORBEL_SLICE_OFFSET"))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Has reports whether the case with the index is run.
func (s Slice) Has(index int) bool {
	// The second term moves the pattern along, so that cases that differ by a
	// multiple of N do not always go together.
	return (index+index/s.n+s.offset)%s.n == 0
}

// Whole reports whether every case is run.
func (s Slice) Whole() bool { return s.n == 1 }

// Picks reports whether the case with the index, if it is run, is run in a variant, of
// so many: in all of them if the slice is whole, else in one, which is another one for
// other indexes and offsets.
func (s Slice) Picks(index, variant, of int) bool {
	return s.Whole() || (index+s.offset/s.n)%of == variant
}

func parse(share, offset string) (Slice, error) {
	s := Slice{n: 32}
	if share != "" {
		var rest string
		if _, err := fmt.Sscanf(share+"$", "1/%d%s", &s.n, &rest); err != nil || s.n < 1 || rest != "$" {
			return Slice{}, fmt.Errorf("CORBEL_SLICE=%s: must have the form 1/N", share)
		}
	}
	if offset != "" {
		var err error
		if s.offset, err = strconv.Atoi(offset); err != nil || s.offset < 0 {
			return Slice{}, fmt.Errorf("CORBEL_SLICE_OFFSET=%s: must be a number from 0", offset)
		}
	}
	return s, nil
}

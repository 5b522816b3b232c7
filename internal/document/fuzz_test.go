// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"reflect"
	"strings"
	"testing"
)

// FuzzValue compares with the parser of kubectl: what both accept, they must
// read alike.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [x, 0777, 1e3, yes]\n", "? a\n: b\n", "a: &x {k: v}\nb: *x\n", "- |\n  t\n- >-\n  u\n",
		`{"a": "\ud83d\ude00", "b": 1.0}`, "a: !!int '5'\n", "1.5: x\n", "a: 2001-01-01\n", "'a': \"b\\n\"\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := Value([]byte(text))
		if err != nil {
			return
		}
		// Merges, tags and separators are read differently on purpose.
		if strings.Contains(text, "<<") || strings.Contains(text, "!") || strings.Contains(text, "---") || strings.Contains(text, "...") || strings.Contains(text, "%") {
			return
		}
		if want, ok := reference(t, text); ok && !reflect.DeepEqual(want, got) {
			t.Errorf("%q: got %#v, want %#v", text, got, want)
		}
	})
}

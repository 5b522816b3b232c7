// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import "testing"

func TestATextIsMadeOneLineAndCutAtACharacter(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one\n\n  two": "one; two", "2 errors:\n\ta\n\tb": "2 errors: a; b",
	} {
		if got := OneLine(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{"short": "short", "é é é é é": "é é …"} {
		if got := Shorten(text, 9); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

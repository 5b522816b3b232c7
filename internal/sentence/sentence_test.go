// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import (
	"encoding/json"
	"testing"
)

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

func TestAPrintableTextControlsNoTerminal(t *testing.T) {
	for text, want := range map[string]string{
		"plain: ä → 日本, tab\tand\nline": "plain: ä → 日本, tab\tand\nline",
		"\x1b[2Jgone":                   `\u001b[2Jgone`,
		"\a\b\r\x00\x7f":                `\u0007\u0008\u000d\u0000\u007f`,
		"\u009b2J \u009d0;title":        `\u009b2J \u009d0;title`,
		"user\u202e gnp \u2066x\u2069":  `user\u202e gnp \u2066x\u2069`,
		"\u200bzero\ufeff\u2028line":    `\u200bzero\ufeff\u2028line`,
		"\U000e0041":                    `\udb40\udc41`,
	} {
		if got := Printable(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
		var back string
		encoded, err := json.Marshal(text)
		if err == nil {
			err = json.Unmarshal([]byte(Printable(string(encoded))), &back)
		}
		if err != nil || back != text {
			t.Errorf("%q in JSON became %q: %v", text, back, err)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

func TestATextIsMadeOneLineAndCutAtACharacter(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "one\n\n  two": "one; two", "2 errors:\n\ta\n\tb": "2 errors: a; b",
	} {
		check.SameNamed(t, text, want, OneLine(text))
	}
	for text, want := range map[string]string{"short": "short", "é é é é é": "é é …"} {
		check.SameNamed(t, text, want, Shorten(text, 9))
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
		check.SameNamed(t, text, want, Printable(text))
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

func TestACommandIsReadByAShellAsItIsMeant(t *testing.T) {
	words := []string{"-n", "", "a b", "it's", "$(id)", "`id`", "--as=Ann O'Hara", "jsonpath={.spec.containers[?(@.name==\"app\")].resources}",
		"a=", "=a", "$x=1", "*", "~", "a;b", "a|b", "a&b", "a>b", "!x", "#x", "a\nb", `a\b`, "ä", "shop/corner", "a=b=c d"}
	out := check.Must(exec.Command("sh", "-c", Command(append([]string{"printf", "%s\\0"}, words...)...)).Output())(t)
	var got []string
	for part := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		got = append(got, part)
	}
	check.EqualNamed(t, "a shell reads other words", words, got)
	for want, words := range map[string][]string{
		"kubectl -n market get pod web-1 -o yaml":       {"kubectl", "-n", "market", "get", "pod", "web-1", "-o", "yaml"},
		"kubectl get pod a -o jsonpath='{.spec}'":       {"kubectl", "get", "pod", "a", "-o", "jsonpath={.spec}"},
		"kubectl get pod a -l 'app in (web, it'\\''s)'": {"kubectl", "get", "pod", "a", "-l", "app in (web, it's)"},
	} {
		if got := Command(words...); got != want {
			t.Errorf("%q became %s, want %s", words, got, want)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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

func TestACommandIsReadByAShellAsItIsMeant(t *testing.T) {
	words := []string{"-n", "", "a b", "it's", "$(id)", "`id`", "--as=Ann O'Hara", "jsonpath={.spec.containers[?(@.name==\"app\")].resources}",
		"a=", "=a", "$x=1", "*", "~", "a;b", "a|b", "a&b", "a>b", "!x", "#x", "a\nb", `a\b`, "ä", "shop/corner", "a=b=c d"}
	out, err := exec.Command("sh", "-c", Command(append([]string{"printf", "%s\\0"}, words...)...)).Output()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for part := range strings.SplitSeq(strings.TrimSuffix(string(out), "\x00"), "\x00") {
		got = append(got, part)
	}
	if diff := cmp.Diff(words, got); diff != "" {
		t.Errorf("a shell reads other words (-want +got):\n%s", diff)
	}
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

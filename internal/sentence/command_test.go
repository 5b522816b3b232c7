// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

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

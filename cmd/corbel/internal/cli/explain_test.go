// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"
	"testing"
)

func TestExplain(t *testing.T) {
	var text strings.Builder
	for _, arguments := range [][]string{{"Timeout"}, {"deletionblocked"}, {"Timout"}, {"Kubeconfig"}, {"zzzzzzzz"}, {"a", "b"}} {
		got := runAs(t.Context(), nil, append([]string{"explain"}, arguments...)...)
		fmt.Fprintf(&text, "$ corbel explain %s\n%s%sexit code %d\n", strings.Join(arguments, " "), got.out, got.err, got.code)
	}
	golden(t, "explain", text.String())
	names, entries := reasons()
	if got := runAs(t.Context(), nil, "explain"); got.code != 0 || got.out != strings.Join(names, "\n")+"\n" {
		t.Errorf("explain: %+v", got)
	}
	for name, entry := range entries {
		if !strings.Contains(entry, "\n  Conditions: ") && !strings.Contains(entry, "\n  Event: ") {
			t.Errorf("the entry of %s has no condition and no event:\n%s", name, entry)
		}
	}
}

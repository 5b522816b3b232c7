// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"strings"
	"testing"
)

func TestWhatAliasesExpandToCountsInTheCache(t *testing.T) {
	text := "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\na: &x [" + strings.Repeat("{key: value}, ", 300) + "]\nb: [" + strings.Repeat("*x, ", 100) + "]\n"
	found, err := manifestsIn("web/templates/a.yaml", text)
	if err != nil {
		t.Fatal(err)
	}
	if got := memoryOf(found); got < 1<<20 {
		t.Errorf("%d bytes of text count as %d bytes of memory", len(text), got)
	}
}

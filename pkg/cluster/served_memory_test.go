// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestKindsOfAnAPIThatIsDownAreRemembered(t *testing.T) {
	var memory servedMemory
	memory = memory.renewed("v1", map[string][]string{"m/v1": {"Node", "Pod"}, "gone/v1": {"X"}})
	for range 2 {
		memory = memory.renewed("v1", map[string][]string{"m/v1": nil, "never/v1": nil})
	}
	want := []string{"m/v1", "m/v1/Node", "m/v1/Pod", "never/v1"}
	if diff := cmp.Diff(want, memory.answer.APIVersions); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

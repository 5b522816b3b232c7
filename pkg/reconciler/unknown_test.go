// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWhatANewerVersionRecordedSurvivesApply(t *testing.T) {
	b := newBench(t)
	b.mustApply(config("a", "1"))
	whole, one := map[string]json.RawMessage{"shards": json.RawMessage(`["x"]`)}, map[string]json.RawMessage{"rank": json.RawMessage("7")}
	b.inventory.Unknown, b.inventory.Items[0].Unknown = whole, one
	b.mustApply(config("a", "2"))
	if got := b.get("a").Data["value"]; got != "2" {
		t.Fatalf("the object was not written: %s", got)
	}
	if diff := cmp.Diff(whole, b.inventory.Unknown); diff != "" {
		t.Errorf("the inventory lost what it did not know:\n%s", diff)
	}
	if diff := cmp.Diff(one, b.inventory.Items[0].Unknown); diff != "" {
		t.Errorf("the item lost what it did not know:\n%s", diff)
	}
}

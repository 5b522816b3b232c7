// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"strings"
	"testing"
)

func TestAFailingObjectHoldsBackOnlyWhatComesAfterIt(t *testing.T) {
	b := newBench(t)
	bad, worse := config("bad", "1"), config("worse", "1")
	bad.Object["data"], worse.Object["data"] = map[string]any{"not a key": "1"}, map[string]any{"not a key": "1"}
	_, err := b.apply(bad, worse, config("beside", "1"), config("before", "1", "apply-order", "-1"), config("after", "1", "apply-order", "1"))
	for _, name := range []string{"/bad", "/worse"} {
		if err == nil || !strings.Contains(err.Error(), "ConfigMap "+b.namespace+name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
	}
	if b.get("beside") == nil || b.get("before") == nil {
		t.Error("the failure held back an object beside or before it")
	}
	if b.get("after") != nil {
		t.Error("the next wave did not wait")
	}
}

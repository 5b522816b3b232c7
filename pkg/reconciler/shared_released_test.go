// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler

import (
	"testing"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// TestARecordedSharedTypeIsToBeOrphaned has a record of a former version, with a shared type and others.
func TestARecordedSharedTypeIsToBeOrphaned(t *testing.T) {
	s := &sharedTypes{byName: map[string]*sharedType{"foos.example.com": {}}}
	items := []v1alpha1.InventoryItem{
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "foos.example.com"},
		{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition", Name: "others.example.com"},
		{Version: "v1", Kind: "ConfigMap", Name: "foos.example.com"},
	}
	for i, item := range s.released(items) {
		if got := item.DeletePolicy == v1alpha1.DeletePolicyOrphan; got != (i == 0) {
			t.Errorf("%s %s: orphaned %t", item.Kind, item.Name, got)
		}
	}
	if items[0].DeletePolicy != "" {
		t.Error("the record itself was changed")
	}
}

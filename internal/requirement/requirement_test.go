// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package requirement

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/status"
)

// TestAConditionSeesNoContent evaluates conditions that would tell the content of an object.
func TestAConditionSeesNoContent(t *testing.T) {
	object := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "example.com/v1", "kind": "Database", "metadata": map[string]any{"name": "main", "annotations": map[string]any{"token": "geheim"}, "labels": map[string]any{"token": "geheim"}},
		"spec": map[string]any{"password": "geheim"}, "data": map[string]any{"token": "geheim"}, "status": map[string]any{"phase": "Running"},
	}}
	for condition, ready := range map[string]bool{
		"self.status.phase == 'Running' && self.metadata.name == 'main'": true, "{'a': true}[self.data.token]": false, "self.spec.password == 'geheim'": false,
		"{'a': true}[self.metadata.annotations.token]": false, "'token' in self.metadata.labels": false,
	} {
		if got := Status(object, condition); (got.Readiness == status.Ready) != ready || strings.Contains(strings.TrimSuffix(got.Message, condition), "geheim") {
			t.Errorf("%s: %+v", condition, got)
		}
	}
	if len(object.Object) != 6 {
		t.Errorf("the object is changed: %v", object.Object)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestWhatAPUTCarriesOverIsKnownOfMostObjects(t *testing.T) {
	const revision = "deployment.kubernetes.io/revision"
	for name, tc := range map[string]struct {
		live map[string]any
		want string
	}{
		"a Deployment": {
			map[string]any{
				"apiVersion": "apps/v1", "kind": "Deployment", "spec": map[string]any{"replicas": int64(2), "paused": true},
				"metadata": map[string]any{"annotations": map[string]any{revision: "3", "other": "x"}},
			},
			`{"metadata":{"annotations":{"` + revision + `":"3"}},"spec":{"replicas":2}}`,
		},
		"a Deployment that its controller has not seen": {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}, "{}"},
		"a ServiceAccount":    {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": "a"}}}, `{"secrets":[{"name":"a"}]}`},
		"a kind that is read": {map[string]any{"apiVersion": "batch/v1", "kind": "Job"}, ""},
		"too much":            {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": strings.Repeat("a", maxCarried)}}}, ""},
		"of another shape":    {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": "none"}, ""},
	} {
		if got := carriedOf(&unstructured.Unstructured{Object: tc.live}); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

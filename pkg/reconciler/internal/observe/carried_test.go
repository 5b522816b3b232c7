// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

func TestWhatAPUTCarriesOverIsKnownOfMostObjects(t *testing.T) {
	const revision, restarted = "deployment.kubernetes.io/revision", "kubectl.kubernetes.io/restartedAt"
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
		"a DaemonSet that was restarted": {
			map[string]any{"apiVersion": "apps/v1", "kind": "DaemonSet", "spec": map[string]any{"template": map[string]any{"metadata": map[string]any{"annotations": map[string]any{restarted: "now"}}}}},
			`{"spec":{"template":{"metadata":{"annotations":{"` + restarted + `":"now"}}}}}`,
		},
		"a role, whose rules may be many":               {map[string]any{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "aggregationRule": map[string]any{}, "rules": []any{}}, ""},
		"a Deployment that its controller has not seen": {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment"}, "{}"},
		"a ServiceAccount":                              {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": "a"}}}, `{"secrets":[{"name":"a"}]}`},
		"a kind that is read":                           {map[string]any{"apiVersion": "batch/v1", "kind": "Job"}, ""},
		"too much":                                      {map[string]any{"apiVersion": "v1", "kind": "ServiceAccount", "secrets": []any{map[string]any{"name": strings.Repeat("a", maxCarried)}}}, ""},
		"of another shape":                              {map[string]any{"apiVersion": "apps/v1", "kind": "Deployment", "spec": "none"}, ""},
	} {
		if got := carriedOf(&unstructured.Unstructured{Object: tc.live}); got != tc.want {
			t.Errorf("%s: %s, want %s", name, got, tc.want)
		}
	}
}

func TestAnOverrideReclaimsWhatOneOffManagersHaveSet(t *testing.T) {
	for _, tt := range []struct {
		policy v1alpha1.UpdatePolicy
		owned  string
		want   bool
	}{
		{v1alpha1.UpdatePolicySsaOverride, "kubectl-edit {}", true},
		{v1alpha1.UpdatePolicySsaOverride, "hpa {}", false},
		{v1alpha1.UpdatePolicySsaOverride, "kubectl/scale {}", false},
		{v1alpha1.UpdatePolicySsaMerge, "kubectl-edit {}", false},
		{v1alpha1.UpdatePolicyReplace, "kubectl-edit {}", false},
	} {
		live := objectOf(t, "apiVersion: v1\nkind: Thing\n"+managers(tt.owned)+"}")
		desired := &plan.Desired{Manifest: live}
		desired.Policies.Update = tt.policy
		if got := reclaims(live, desired); got != tt.want {
			t.Errorf("%s, %s: got %t", tt.policy, tt.owned, got)
		}
	}
}

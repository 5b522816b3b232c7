// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package owned

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/test/check"
)

func TestFieldsHaveTheirOwnerByDesign(t *testing.T) {
	const replicas, restarted, revision = "[spec replicas]", "[spec template metadata annotations kubectl.kubernetes.io/restartedAt]", "[metadata annotations deployment.kubernetes.io/revision]"
	for _, tt := range []struct{ kind, manifest, paths, stripped string }{
		{"apps/Deployment", `{}`, "[" + replicas + " " + restarted + " " + revision + "]", "map[]"},
		{"apps/Deployment", `{spec: {replicas: 2}}`, "[" + restarted + " " + revision + "]", "map[spec:map[replicas:2]]"},
		{"apps/Deployment", `{spec: {replicas: null, template: {metadata: {annotations: {kubectl.kubernetes.io/restartedAt: x}}}}}`,
			"[" + replicas + " " + revision + "]", "map[spec:map[template:map[metadata:map[annotations:map[kubectl.kubernetes.io/restartedAt:x]]]]]"},
		{"apps/StatefulSet", `{spec: {replicas: 2}}`, "[" + restarted + "]", "map[spec:map[replicas:2]]"},
		{"apps/DaemonSet", `{}`, "[" + restarted + "]", "map[]"},
		{"/ServiceAccount", `{secrets: []}`, "[[imagePullSecrets]]", "map[secrets:[]]"},
		{"rbac.authorization.k8s.io/ClusterRole", `{aggregationRule: {}, rules: []}`, "[[rules]]", "map[aggregationRule:map[]]"},
		{"rbac.authorization.k8s.io/ClusterRole", `{rules: []}`, "[]", "map[rules:[]]"},
		{"batch/Job", `{}`, "[]", "map[]"},
	} {
		var manifest map[string]any
		check.NoError(t, yaml.Unmarshal([]byte(tt.manifest), &manifest))
		group, name, _ := strings.Cut(tt.kind, "/")
		kind := schema.GroupKind{Group: group, Kind: name}
		if got := fmt.Sprint(Paths(kind, manifest)); got != tt.paths {
			t.Errorf("%s %s: paths %s, want %s", tt.kind, tt.manifest, got, tt.paths)
		}
		Strip(kind, manifest)
		if got := fmt.Sprint(manifest); got != tt.stripped {
			t.Errorf("%s %s: stripped %s, want %s", tt.kind, tt.manifest, got, tt.stripped)
		}
	}
}

func TestOnlyTheOwnerSetsAFieldByDesign(t *testing.T) {
	const restarted = "spec.template.metadata.annotations[kubectl.kubernetes.io/restartedAt]"
	for _, tt := range []struct {
		kind          schema.GroupKind
		manager, path string
		want          bool
	}{
		{deployment, "kubectl-rollout", restarted, true},
		{deployment, "kubectl-edit", restarted, false},
		{deployment, "kubectl-rollout", "spec.paused", false},
		{replicaSet, "kubectl-rollout", restarted, false},
		{clusterRole, "clusterrole-aggregation-controller", "rules", true},
	} {
		if got := ByDesign(tt.kind, tt.manager, tt.path); got != tt.want {
			t.Errorf("%s of %s by %s: got %t", tt.path, tt.kind, tt.manager, got)
		}
	}
}

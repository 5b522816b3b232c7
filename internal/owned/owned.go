// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package owned

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// field is one field that has an owner by design.
type field struct {
	kinds []schema.GroupKind
	path  []string
	// owner is the field manager that sets it.
	owner string
	// with is a field at the top of the manifest. With it the field is the owner's, also if the
	// manifest sets it. If it is empty, the field is the owner's unless the manifest sets it.
	with string
}

var (
	deployment     = schema.GroupKind{Group: "apps", Kind: "Deployment"}
	statefulSet    = schema.GroupKind{Group: "apps", Kind: "StatefulSet"}
	daemonSet      = schema.GroupKind{Group: "apps", Kind: "DaemonSet"}
	replicaSet     = schema.GroupKind{Group: "apps", Kind: "ReplicaSet"}
	replication    = schema.GroupKind{Kind: "ReplicationController"}
	serviceAccount = schema.GroupKind{Kind: "ServiceAccount"}
	clusterRole    = schema.GroupKind{Group: "rbac.authorization.k8s.io", Kind: "ClusterRole"}
)

const controllerManager = "kube-controller-manager"

var fields = []field{
	// Autoscalers, and everything else that scales. The subresource scale shows neither before the first change.
	{[]schema.GroupKind{deployment, statefulSet, replicaSet, replication}, []string{"spec", "replicas"}, controllerManager, ""},
	// The time of the last "kubectl rollout restart". Without it all pods are replaced once more.
	{[]schema.GroupKind{deployment, statefulSet, daemonSet}, []string{"spec", "template", "metadata", "annotations", "kubectl.kubernetes.io/restartedAt"}, "kubectl-rollout", ""},
	{[]schema.GroupKind{deployment}, []string{"metadata", "annotations", "deployment.kubernetes.io/revision"}, controllerManager, ""},
	{[]schema.GroupKind{serviceAccount}, []string{"secrets"}, controllerManager, ""},
	{[]schema.GroupKind{serviceAccount}, []string{"imagePullSecrets"}, controllerManager, ""},
	{[]schema.GroupKind{clusterRole}, []string{"rules"}, "clusterrole-aggregation-controller", "aggregationRule"},
}

// Paths returns the fields of an object that are not for its manifest to decide.
func Paths(kind schema.GroupKind, manifest map[string]any) [][]string {
	var paths [][]string
	for _, f := range fields {
		if slices.Contains(f.kinds, kind) && (f.with != "" && IsSet(manifest, f.with) || f.with == "" && !IsSet(manifest, f.path...)) {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// SmallPaths returns the fields that may have an owner in an object of the kind, whatever its manifest says. It
// returns nil if there are none, or if they may be large.
func SmallPaths(kind schema.GroupKind) [][]string {
	var paths [][]string
	for _, f := range fields {
		if slices.Contains(f.kinds, kind) && f.with == "" {
			paths = append(paths, f.path)
		}
	}
	return paths
}

// Strip removes fields from a manifest that have no effect.
func Strip(kind schema.GroupKind, manifest map[string]any) {
	for _, path := range Paths(kind, manifest) {
		unstructured.RemoveNestedField(manifest, path...)
	}
}

// ByDesign reports whether a field manager has set the field at a path as its owner. The path is written like
// spec.template.metadata.annotations[a.b/c].
func ByDesign(kind schema.GroupKind, manager, path string) bool {
	return slices.ContainsFunc(fields, func(f field) bool {
		return f.owner == manager && slices.Contains(f.kinds, kind) && text(f.path) == path
	})
}

func text(path []string) string {
	var b strings.Builder
	for i, key := range path {
		switch {
		case strings.ContainsAny(key, "./"):
			b.WriteString("[" + key + "]")
		case i > 0:
			b.WriteString("." + key)
		default:
			b.WriteString(key)
		}
	}
	return b.String()
}

// IsSet reports whether an object has a field that is not null.
func IsSet(object map[string]any, path ...string) bool {
	value, found, err := unstructured.NestedFieldNoCopy(object, path...)
	return found && err == nil && value != nil
}

// oneOff are field managers of tools that persons and scripts use, not of controllers that would
// write their fields again. The server uses the last one for an object with unknown managers.
var oneOff = []string{"kubectl", "helm", "oc", "k9s", "before-first-apply"}

// IsOneOff reports whether the field manager is one of them, or a command of kubectl with a name of its own,
// such as kubectl-edit.
func IsOneOff(manager string) bool {
	return slices.Contains(oneOff, manager) || strings.HasPrefix(manager, "kubectl-")
}

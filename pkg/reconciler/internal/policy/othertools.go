// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Annotations of other tools that protect an object from deletion.
const (
	// annotationHelm of Helm orphans the object.
	//
	// On: dependent objects
	// Format: keep; other values have no effect
	// Default: none
	// Example: helm.sh/resource-policy: keep
	annotationHelm = "helm.sh/resource-policy"
	// annotationLifecycle of kpt, Config Sync and other tools with cli-utils orphans the object.
	//
	// On: dependent objects
	// Format: detach; other values have no effect
	// Default: none
	// Example: client.lifecycle.config.k8s.io/deletion: detach
	annotationLifecycle = "client.lifecycle.config.k8s.io/deletion"
	// annotationOnRemove of tools with cli-utils orphans the object.
	//
	// On: dependent objects
	// Format: keep; other values have no effect
	// Default: none
	// Example: cli-utils.sigs.k8s.io/on-remove: keep
	annotationOnRemove = "cli-utils.sigs.k8s.io/on-remove"
	// labelFlux of Flux, a label or an annotation, orphans the object.
	//
	// On: dependent objects
	// Format: disabled; other values have no effect
	// Default: none
	// Example: kustomize.toolkit.fluxcd.io/prune: disabled
	labelFlux = "kustomize.toolkit.fluxcd.io/prune"
	// annotationArgo of Argo CD orphans the object when the manifests no longer contain it (Prune=false,
	// Prune=confirm), or when the component is deleted (Delete=false, Delete=confirm).
	//
	// On: dependent objects
	// Format: options, separated by commas; options other than these four have no effect
	// Default: none
	// Example: argocd.argoproj.io/sync-options: Prune=false,Delete=false
	annotationArgo = "argocd.argoproj.io/sync-options"
)

// HelmRelease is the name in messages for a release of Helm, the owner in its annotations.
func HelmRelease(namespace, name string) string {
	if namespace == "" {
		return "Helm release " + name
	}
	return "Helm release " + namespace + "/" + name
}

// FluxRelease is the name in messages for a HelmRelease of Flux, the owner in its labels.
func FluxRelease(namespace, name string) string {
	if namespace == "" {
		return "Flux HelmRelease " + name
	}
	return "Flux HelmRelease " + namespace + "/" + name
}

// WithKeep returns the set with the nearest delete policy for the labels and annotations of other
// tools on a manifest. It only adds protection: an object that the set orphans stays orphaned. An
// annotation of ours, which Parse reads, takes precedence over the result. Upper and lower case are
// the same, as in Helm and Flux.
func (s Set) WithKeep(labels, annotations map[string]string) Set {
	is := func(values map[string]string, key, value string) bool {
		return strings.EqualFold(strings.TrimSpace(values[key]), value)
	}
	keep := is(annotations, annotationHelm, "keep") ||
		is(annotations, annotationLifecycle, "detach") || is(annotations, annotationOnRemove, "keep") ||
		is(annotations, labelFlux, "disabled") || is(labels, labelFlux, "disabled")
	onApply, onDelete := keep, keep
	for option := range strings.SplitSeq(annotations[annotationArgo], ",") {
		switch strings.ToLower(strings.TrimSpace(option)) {
		// There is no way to confirm a deletion here, so an object that needs it is kept.
		case "prune=false", "prune=confirm":
			onApply = true
		case "delete=false", "delete=confirm":
			onDelete = true
		}
	}
	onApply = onApply || OrphansOnApply(s.Delete)
	onDelete = onDelete || OrphansOnDelete(s.Delete)
	switch {
	case onApply && onDelete:
		s.Delete = v1alpha1.DeletePolicyOrphan
	case onApply:
		s.Delete = v1alpha1.DeletePolicyOrphanOnApply
	case onDelete:
		s.Delete = v1alpha1.DeletePolicyOrphanOnDelete
	}
	return s
}

// IgnoreRule names fields to ignore of the objects of some types.
type IgnoreRule struct {
	Type v1alpha1.TypeInfo
	// Selector selects objects by the labels of their manifests.
	Selector labels.Selector
	// Fields are JSON pointers (RFC 6901).
	Fields []string
}

// WithIgnoreRules returns the set with the fields of all rules that match. Parse adds the fields of
// the annotation.
func (s Set) WithIgnoreRules(rules []IgnoreRule, group, kind string, set map[string]string) Set {
	fields := slices.Clone(s.IgnoreFields)
	for _, rule := range rules {
		if rule.Type.Matches(group, kind) && rule.Selector.Matches(labels.Set(set)) {
			fields = append(fields, rule.Fields...)
		}
	}
	slices.Sort(fields)
	s.IgnoreFields = slices.Compact(fields)
	return s
}

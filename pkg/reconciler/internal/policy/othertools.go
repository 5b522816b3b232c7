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
	// annotationHelm with the value keep: Helm neither prunes nor uninstalls the object.
	annotationHelm = "helm.sh/resource-policy"
	// annotationLifecycle with the value detach, and annotationOnRemove with the value
	// keep, are those of kpt, Config Sync and others that are built on cli-utils.
	annotationLifecycle = "client.lifecycle.config.k8s.io/deletion"
	annotationOnRemove  = "cli-utils.sigs.k8s.io/on-remove"
	// labelFlux with the value disabled may be a label or an annotation.
	labelFlux = "kustomize.toolkit.fluxcd.io/prune"
	// annotationArgo is a list of options, separated by commas.
	annotationArgo = "argocd.argoproj.io/sync-options"
)

// WithKeep returns the set with the nearest delete policy for what the labels and
// annotations of a manifest say to other tools. It only adds protection: an object that
// the set orphans stays orphaned. An annotation of ours, which Parse reads, takes
// precedence over the result. Upper and lower case are the same, as in Helm and Flux.
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
		// There is no way to confirm a deletion here, so what needs it is kept.
		case "prune=false", "prune=confirm":
			onApply = true
		case "delete=false", "delete=confirm":
			onDelete = true
		}
	}
	onApply = onApply || s.Delete == v1alpha1.DeletePolicyOrphan || s.Delete == v1alpha1.DeletePolicyOrphanOnApply
	onDelete = onDelete || s.Delete == v1alpha1.DeletePolicyOrphan || s.Delete == v1alpha1.DeletePolicyOrphanOnDelete
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

// WithIgnoreRules returns the set with the fields of all rules that match. Parse adds
// those of the annotation.
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

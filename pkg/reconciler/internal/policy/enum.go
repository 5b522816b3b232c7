// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// The values of each policy; the first is the default.
var (
	adoptionPolicies  = []v1alpha1.AdoptionPolicy{v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyNever, v1alpha1.AdoptionPolicyAlways, v1alpha1.AdoptionPolicyIgnore}
	reconcilePolicies = []v1alpha1.ReconcilePolicy{v1alpha1.ReconcilePolicyOnObjectChange, v1alpha1.ReconcilePolicyOnObjectOrComponentChange, v1alpha1.ReconcilePolicyOnce, v1alpha1.ReconcilePolicyOncePerManifest}
	updatePolicies    = []v1alpha1.UpdatePolicy{v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicySsaMerge, v1alpha1.UpdatePolicySsaOverride, v1alpha1.UpdatePolicyRecreate, v1alpha1.UpdatePolicyRecreateOnImmutable}
	deletePolicies    = []v1alpha1.DeletePolicy{v1alpha1.DeletePolicyDelete, v1alpha1.DeletePolicyOrphan, v1alpha1.DeletePolicyOrphanOnApply, v1alpha1.DeletePolicyOrphanOnDelete}
	driftPolicies     = []v1alpha1.DriftPolicy{v1alpha1.DriftPolicyRepair, v1alpha1.DriftPolicyReport, v1alpha1.DriftPolicyIgnore}
	namespacePolicies = []v1alpha1.MissingNamespacesPolicy{v1alpha1.MissingNamespacesPolicyCreate, v1alpha1.MissingNamespacesPolicyDoNotCreate}
	propagations      = []Propagation{PropagationBackground, PropagationOrphan}
	runOns            = []RunOn{RunOnPreDelete, RunOnPostDelete}
)

// parseEnum finds the value that text names, in kebab-case or CamelCase.
func parseEnum[T ~string](values []T, text string) (T, error) {
	wanted := Kebab(text)
	for _, value := range values {
		if Kebab(string(value)) == wanted {
			return value, nil
		}
	}
	return "", fmt.Errorf("%s is not one of %s", quote(text), list(values))
}

// list returns the values as they are written in annotations.
func list[T ~string](values []T) string {
	names := make([]string, len(values))
	for i, value := range values {
		names[i] = Kebab(string(value))
	}
	return strings.Join(names, ", ")
}

// Kebab turns "SsaMerge" and "ssaMerge" into "ssa-merge", as values are written in annotations; what is
// kebab-case already stays.
func Kebab(text string) string {
	text = strings.TrimSpace(text)
	if strings.IndexFunc(text, unicode.IsUpper) < 0 {
		return text
	}
	var b strings.Builder
	for i, r := range text {
		if unicode.IsUpper(r) && i > 0 && text[i-1] != '-' {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// quote returns the text in quotes, shortened: values come from users and end in messages.
func quote(text string) string {
	const limit = 60
	if runes := []rune(text); len(runes) > limit {
		text = string(runes[:limit]) + "..."
	}
	return fmt.Sprintf("%q", text)
}

// IsUnset reports whether the value of a policy is "default", which is deprecated and
// means the same as no annotation.
func IsUnset(text string) bool { return Kebab(text) == "default" }

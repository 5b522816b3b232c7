// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"errors"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// finish completes an item that has its place: values, rules and digest.
func (i *item) finish(in Input) {
	if i.broken || i.aside {
		return
	}
	unmark(i.content, in.Name)
	if i.key.GroupKind() == kindSecret {
		i.encodeSecret()
	}
	i.checkLimits(in)
	ignored := i.parsePolicies(in)
	if len(i.mistakes) > 0 {
		return
	}
	i.digest = i.manifestDigest(in)
	var beside []string
	switch i.policies.Reconcile {
	case v1alpha1.ReconcilePolicyOnObjectOrComponentChange:
		beside = append([]string{in.ComponentDigest}, ignored...)
	case v1alpha1.ReconcilePolicyOnObjectChange:
		// The hash of the accepted values depends on the rules. When they change, the
		// object is written once; otherwise it would look as if it had drifted.
		beside = ignored
	}
	if len(beside) > 0 {
		i.digest = plan.WithComponent(i.digest, digest.Combine(beside...))
	}
	if i.policies.Revision != "" {
		i.digest = plan.WithRevision(i.digest, digest.Combine(i.policies.Revision))
	}
}

// manifestDigest identifies the manifest without its revision.
func (i *item) manifestDigest(in Input) string {
	if i.policies.Revision != "" {
		metadata := i.content["metadata"].(map[string]any)
		name := in.Name + "/" + v1alpha1.AnnotationRevision
		revision := stringsOf(i.content, "annotations")[name]
		unset(metadata, "annotations", name)
		defer set(metadata, "annotations", name, revision)
	}
	return in.Hasher.Manifest(i.content)
}

// parsePolicies reads the annotations and checks what depends on the type. It returns
// the fields that rules of the options ignore.
func (i *item) parsePolicies(in Input) (ignored []string) {
	labels, annotations := stringsOf(i.content, "labels"), stringsOf(i.content, "annotations")
	gk := i.key.GroupKind()
	defaults := in.Defaults.WithKeep(labels, annotations).WithIgnoreRules(in.IgnoreRules, gk.Group, gk.Kind, labels)
	set, err := policy.Parse(in.Name, annotations, defaults)
	for _, err := range split(err) {
		i.mistake("%w", err)
	}
	if err != nil {
		return nil
	}
	own, asked := annotations[in.Name+"/"+v1alpha1.AnnotationUpdatePolicy]
	asked = asked && !policy.IsUnset(own)
	recreates := set.Update == v1alpha1.UpdatePolicyRecreate || set.Update == v1alpha1.UpdatePolicyRecreateOnImmutable
	if recreates && !asked && (bearers[gk] || holders[gk]) {
		set.Update = v1alpha1.UpdatePolicyReplace
	}
	if set.Order.Purge != nil && bearers[gk] {
		i.mistake("annotation %s/%s: a %s cannot be purged", in.Name, v1alpha1.AnnotationPurgeOrder, gk.Kind)
	}
	if _, err := in.Compiler.Compile(set.ReadyWhen); err != nil {
		i.mistake("annotation %s/%s: %w", in.Name, v1alpha1.AnnotationReadyWhen, err)
	}
	i.policies, i.ruled = set, true
	return defaults.IgnoreFields
}

// stringsOf returns labels or annotations, whose values are known to be strings.
func stringsOf(content map[string]any, field string) map[string]string {
	values, _ := at(content, "metadata", field).(map[string]any)
	if len(values) == 0 {
		return nil
	}
	result := make(map[string]string, len(values))
	for name, value := range values {
		result[name], _ = value.(string)
	}
	return result
}

// split returns the parts of a joined error.
func split(err error) []error {
	if err == nil {
		return nil
	}
	if joined, ok := errors.AsType[interface {
		error
		Unwrap() []error
	}](err); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

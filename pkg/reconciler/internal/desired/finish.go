// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"encoding/base64"
	"maps"
	"slices"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/owned"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/policy"
)

// finish completes an item that has its namespace: values, policies and digest.
func (i *item) finish(in Input) {
	if i.broken || i.excluded {
		return
	}
	removeOwnership(i.content, in.Name)
	i.checkShared(in.Name)
	if i.key.GroupKind() == kindSecret {
		i.encodeSecret()
	}
	i.checkUnprocessed(in.Name)
	i.checkLimits(in)
	ignored := i.parsePolicies(in)
	if len(i.mistakes) > 0 {
		return
	}
	i.digest = i.manifestDigest(in)
	i.share(in)
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
	owned.Strip(i.key.GroupKind(), i.content)
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

// parsePolicies reads the annotations and checks the policies that depend on the type. It returns
// the fields that rules of the options ignore.
func (i *item) parsePolicies(in Input) (ignored []string) {
	labels, annotations := stringsOf(i.content, "labels"), stringsOf(i.content, "annotations")
	gk := i.key.GroupKind()
	defaults := in.Defaults.WithKeep(labels, annotations).WithIgnoreRules(in.IgnoreRules, gk.Group, gk.Kind, labels)
	set, err := policy.Parse(in.Name, annotations, defaults)
	if err != nil {
		joined := err.(interface{ Unwrap() []error })
		i.mistakes = append(i.mistakes, joined.Unwrap()...)
		return nil
	}
	own, asked := annotations[in.Name+"/"+v1alpha1.AnnotationUpdatePolicy]
	asked = asked && !policy.IsUnset(own)
	if set.Recreates() && !asked && (cascadingKinds[gk] || dataKinds[gk]) {
		set.Update = v1alpha1.UpdatePolicyReplace
	}
	if set.Order.Purge != nil && cascadingKinds[gk] {
		i.mistake("annotation %s/%s: a %s cannot be purged", in.Name, v1alpha1.AnnotationPurgeOrder, gk.Kind)
	}
	if _, err := in.Compiler.Compile(set.ReadyWhen); err != nil {
		i.mistake("annotation %s/%s: %w", in.Name, v1alpha1.AnnotationReadyWhen, err)
	}
	for _, output := range set.Outputs {
		if _, err := in.Compiler.CompileOutput(output.Expression); err != nil {
			i.mistake("output %s: %w", output.Name, err)
		}
	}
	i.policies, i.policiesValid = set, true
	return defaults.IgnoreFields
}

// stringsOf returns labels or annotations; their values are known to be strings.
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

// setOwnership sets our label and annotation in place of an ownerReference to the component: the garbage
// collector would not keep the order of a deletion, and would delete orphans. None of that is part of the digest, which
// is about the manifest of the user.
func setOwnership(content map[string]any, name string, owner plan.Owner) {
	metadata := content["metadata"].(map[string]any)
	delete(metadata, "ownerReferences")
	set(metadata, "labels", name+"/"+vocabulary.LabelOwnerID, owner.ID)
	set(metadata, "annotations", name+"/"+vocabulary.AnnotationOwner, owner.Ref.String())
}

// SetShared sets the label and the annotation of a shared type.
func SetShared(content map[string]any, name, mark string) {
	metadata := content["metadata"].(map[string]any)
	delete(metadata, "ownerReferences")
	set(metadata, "labels", name+"/"+vocabulary.LabelShared, "true")
	set(metadata, "annotations", name+"/"+vocabulary.LabelShared, mark)
}

// removeOwnership removes our label and annotation if they came with the manifest: a manifest
// that was made of a live object does not decide about the owner of this one.
func removeOwnership(content map[string]any, name string) {
	metadata := content["metadata"].(map[string]any)
	unset(metadata, "labels", name+"/"+vocabulary.LabelOwnerID)
	unset(metadata, "annotations", name+"/"+vocabulary.AnnotationOwner)
}

func set(metadata map[string]any, field, name, value string) {
	values, isMap := metadata[field].(map[string]any)
	if !isMap {
		values = map[string]any{}
		metadata[field] = values
	}
	values[name] = value
}

// unset removes a value, and the map if nothing is left: empty labels are none.
func unset(metadata map[string]any, field, name string) {
	values, _ := metadata[field].(map[string]any)
	delete(values, name)
	if len(values) == 0 {
		delete(metadata, field)
	}
}

// encodeSecret merges stringData into data, as the server would. Otherwise the manifest would
// always differ from the object that the server stores. Values must not get into messages.
func (i *item) encodeSecret() {
	if at(i.content, "stringData") == nil {
		delete(i.content, "stringData")
		return
	}
	plain, isMap := i.content["stringData"].(map[string]any)
	if !isMap {
		i.fail("stringData is not a map but %s", describe(i.content["stringData"]))
		return
	}
	data, isMap := i.content["data"].(map[string]any)
	if !isMap && i.content["data"] != nil {
		i.fail("data is not a map but %s", describe(i.content["data"]))
		return
	}
	if data == nil {
		data = map[string]any{}
	}
	for _, name := range slices.Sorted(maps.Keys(plain)) {
		secret, isString := plain[name].(string)
		if !isString {
			i.fail("stringData: the value of %s is not a string but %s: quote it", name, describe(plain[name]))
			continue
		}
		data[name] = base64.StdEncoding.EncodeToString([]byte(secret))
	}
	delete(i.content, "stringData")
	if len(data) > 0 {
		i.content["data"] = data
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/vocabulary"
)

// SharedType is a definition that all components share.
type SharedType struct {
	// Hash identifies the content, without a key.
	Hash string
	// definition is the content as the generator has it, which several engines use; nil if the rendered objects have it.
	definition *unstructured.Unstructured
	name       string
	// digests are the digests of the manifest as components render it.
	digests []string
}

// NewSharedType returns a shared type of the given content, which must not change; nil if the rendered objects have it.
func NewSharedType(name string, definition *unstructured.Unstructured, hasher digest.Hasher) *SharedType {
	t := &SharedType{definition: definition, name: name}
	manifest := t.Manifest()
	if manifest == nil {
		return &SharedType{} // none, or the rendered one is refused with all its mistakes
	}
	t.Hash, t.digests = digest.Hasher{}.Manifest(manifest.Object), []string{hasher.Manifest(manifest.Object)}
	// A generator that is to create it once renders it with this annotation.
	set(manifest.Object["metadata"].(map[string]any), "annotations", name+"/"+v1alpha1.AnnotationReconcilePolicy, "once")
	t.digests = append(t.digests, hasher.Manifest(manifest.Object))
	return t
}

// Manifest returns a copy of the content without label and annotation of ours; nil if the rendered objects have it.
func (t *SharedType) Manifest() *unstructured.Unstructured {
	if t.definition == nil {
		return nil
	}
	i := &item{content: t.definition.DeepCopy().Object}
	if i.identify(); i.broken {
		return nil
	}
	removeOwnership(i.content, t.name)
	delete(i.content["metadata"].(map[string]any), "namespace")
	return &unstructured.Unstructured{Object: i.content}
}

// share finds out whether all components share the type that the item defines. They do not if this component has another
// content, which then is its own.
func (i *item) share(in Input) {
	known := in.Shared[i.key.Name]
	if known == nil || i.key.GroupKind() != kindDefinition {
		return
	}
	if i.shared = known.Hash == "" || in.Stored || slices.Contains(known.digests, i.digest); !i.shared || known.Hash == "" {
		return
	}
	// The generator holds the content; it is not stored for each component.
	i.content = map[string]any{
		"apiVersion": i.content["apiVersion"], "kind": i.content["kind"],
		"metadata": map[string]any{"name": i.key.Name}, "spec": map[string]any{"group": text(i.content, "spec", "group")},
	}
}

// checkShared refuses the label and the annotation of shared types: a manifest cannot make an object one.
func (i *item) checkShared(name string) {
	for _, field := range []string{"labels", "annotations"} {
		if _, there := stringsOf(i.content, field)[name+"/"+vocabulary.LabelShared]; there {
			i.mistake("metadata.%s: %s/%s is set by the operator only: types are shared that are in the folder crds of a chart, "+
				"or that the option SharedTypes names; remove it from the manifest", field, name, vocabulary.LabelShared)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/digest"
)

// SharedType is a definition that all components share.
type SharedType struct {
	// Manifest is the content without label and annotation of ours; nil if the rendered objects have it.
	Manifest *unstructured.Unstructured
	// digests are those of the manifest as components render it.
	digests []string
}

// NewSharedType returns a shared type of the given content, which is not changed; nil if the rendered objects have it.
func NewSharedType(name string, definition *unstructured.Unstructured, hasher digest.Hasher) *SharedType {
	if definition == nil {
		return &SharedType{}
	}
	i := &item{content: definition.DeepCopy().Object}
	if i.identify(); i.broken {
		return &SharedType{} // the rendered one is refused with all its mistakes
	}
	removeOwnership(i.content, name)
	delete(i.content["metadata"].(map[string]any), "namespace")
	t := &SharedType{Manifest: &unstructured.Unstructured{Object: i.content}, digests: []string{hasher.Manifest(i.content)}}
	// A generator that is to create it once renders it with this annotation.
	once := t.Manifest.DeepCopy()
	set(once.Object["metadata"].(map[string]any), "annotations", name+"/"+v1alpha1.AnnotationReconcilePolicy, "once")
	t.digests = append(t.digests, hasher.Manifest(once.Object))
	return t
}

// share finds out whether all components share the type that the item defines. They do not if this component has another
// content, which then is its own.
func (i *item) share(in Input) {
	known := in.Shared[i.key.Name]
	if known == nil || i.key.GroupKind() != kindDefinition {
		return
	}
	if i.shared = known.Manifest == nil || in.Stored || slices.Contains(known.digests, i.digest); !i.shared || known.Manifest == nil {
		return
	}
	// The content is that of the generator, and is not kept for each component.
	i.content = map[string]any{
		"apiVersion": i.content["apiVersion"], "kind": i.content["kind"],
		"metadata": map[string]any{"name": i.key.Name}, "spec": map[string]any{"group": text(i.content, "spec", "group")},
	}
}

// checkShared refuses the label and the annotation of shared types: a manifest cannot make an object one.
func (i *item) checkShared(name string) {
	for _, field := range []string{"labels", "annotations"} {
		if _, there := stringsOf(i.content, field)[name+"/"+v1alpha1.LabelShared]; there {
			i.mistake("metadata.%s: %s/%s is set by the operator only: types are shared that are in the folder crds of a chart, "+
				"or that the option SharedTypes names; remove it from the manifest", field, name, v1alpha1.LabelShared)
		}
	}
}

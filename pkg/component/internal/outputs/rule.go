// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package outputs

import (
	"cmp"
	"path"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
)

// Rule declares an output of objects that do not declare the output by an annotation.
type Rule struct {
	// Name is the name of the output.
	Name string
	// Type is the type of the object.
	Type v1alpha1.TypeInfo
	// Object is the name of the object; a * stands for any characters. It is empty if the object is the only one of its type.
	Object string
	// Expression is a CEL expression over the object.
	Expression string
	// Secret: the value is published in a Secret.
	Secret bool
}

// Annotate adds the outputs to rendered objects, which it copies before. An output of an object that is not rendered is not there. If
// several objects have the same output, the engine refuses them.
func Annotate(name string, rules []Rule, objects []client.Object) {
	for _, rule := range rules {
		annotation := name + "/" + v1alpha1.AnnotationOutput + "." + rule.Name
		if rule.Secret {
			annotation = name + "/" + v1alpha1.AnnotationSecretOutput + "." + rule.Name
		}
		for i, object := range objects {
			gvk := object.GetObjectKind().GroupVersionKind()
			if named, _ := path.Match(cmp.Or(rule.Object, "*"), object.GetName()); !named || !rule.Type.Matches(gvk.Group, gvk.Kind) {
				continue
			}
			object = object.DeepCopyObject().(client.Object)
			annotations := object.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[annotation] = rule.Expression
			object.SetAnnotations(annotations)
			objects[i] = object
		}
	}
}

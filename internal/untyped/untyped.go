// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package untyped

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	kjson "sigs.k8s.io/json"
)

// List returns the objects as maps. The error names all objects that cannot be converted.
func List(objects []client.Object, scheme *runtime.Scheme) ([]*unstructured.Unstructured, error) {
	converted := make([]*unstructured.Unstructured, len(objects))
	var errs []error
	for i, object := range objects {
		var err error
		if converted[i], err = Of(object, scheme); err != nil {
			errs = append(errs, fmt.Errorf("object %d of %d (%T): %w", i+1, len(objects), object, err))
		}
	}
	return converted, errors.Join(errs...)
}

// Into decodes the content of an object into a Go type, and returns the fields that the type does not have. The converter of apimachinery
// panics if a field of the type is not exported, as the content of a reference in a spec.
func Into(content map[string]any, into any) (unknown []error, err error) {
	text, err := json.Marshal(content)
	if err != nil {
		return nil, err
	}
	return kjson.UnmarshalStrict(text, into)
}

// Of returns an object as a map, with apiVersion and kind, which the scheme knows if the object does not
// hold them. An object that is a map already is not copied. Empty fields of Go types are left out.
func Of(object client.Object, scheme *runtime.Scheme) (*unstructured.Unstructured, error) {
	switch o := object.(type) {
	case *unstructured.Unstructured:
		if o.Object == nil {
			return nil, errors.New("it is empty")
		}
		return o, nil
	case runtime.Unstructured:
		return &unstructured.Unstructured{Object: o.UnstructuredContent()}, nil
	case *metav1.PartialObjectMetadata:
		return nil, errors.New("it holds metadata only, so its manifest is not known")
	}
	kind := object.GetObjectKind().GroupVersionKind()
	if kind.Kind == "" || kind.Version == "" {
		var err error
		if kind, err = apiutil.GVKForObject(object, scheme); err != nil {
			return nil, fmt.Errorf("it has no apiVersion and kind: %w", err)
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	converted := &unstructured.Unstructured{Object: content}
	converted.SetGroupVersionKind(kind)
	dropEmptyTimestamps(content)
	if status, ok := content["status"].(map[string]any); ok && len(status) == 0 {
		delete(content, "status")
	}
	return converted, nil
}

// dropEmptyTimestamps removes "creationTimestamp: null", which many Go types
// have in their templates although it is not set.
func dropEmptyTimestamps(value any) {
	switch v := value.(type) {
	case map[string]any:
		if timestamp, found := v["creationTimestamp"]; found && timestamp == nil {
			delete(v, "creationTimestamp")
		}
		for _, element := range v {
			dropEmptyTimestamps(element)
		}
	case []any:
		for _, element := range v {
			dropEmptyTimestamps(element)
		}
	}
}

// EachImage calls visit for each container and each image volume of an object, wherever they are, but not in
// schemas: with the map that may hold an image, and the name of its field.
func EachImage(object *unstructured.Unstructured, visit func(holder map[string]any, field string)) {
	if object.GetKind() != "CustomResourceDefinition" {
		eachImage(object.Object, visit)
	}
}

func eachImage(value any, visit func(holder map[string]any, field string)) {
	switch value := value.(type) {
	case map[string]any:
		for key, child := range value {
			eachImage(child, visit)
			list, _ := child.([]any)
			for _, item := range list {
				fields, _ := item.(map[string]any)
				source, isSource := fields["image"].(map[string]any)
				switch {
				case (key == "containers" || key == "initContainers") && fields != nil:
					visit(fields, "image")
				case key == "volumes" && isSource:
					visit(source, "reference")
				}
			}
		}
	case []any:
		for _, child := range value {
			eachImage(child, visit)
		}
	}
}

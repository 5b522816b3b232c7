// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// ToUnstructuredList returns the objects as maps. Objects that are maps already are not
// copied. The error names all objects that cannot be converted.
func ToUnstructuredList(objects []client.Object) ([]*unstructured.Unstructured, error) {
	converted := make([]*unstructured.Unstructured, len(objects))
	var errs []error
	for i, object := range objects {
		var err error
		if converted[i], err = ToUnstructured(object); err != nil {
			errs = append(errs, fmt.Errorf("object %d of %d (%T): %w", i+1, len(objects), object, err))
		}
	}
	return converted, errors.Join(errs...)
}

// ToUnstructured returns an object as a map, with apiVersion and kind, which are known for
// the types of the Kubernetes API even if the object does not hold them.
func ToUnstructured(object client.Object) (converted *unstructured.Unstructured, err error) {
	if u, ok := object.(*unstructured.Unstructured); ok {
		if u.Object == nil {
			return nil, errors.New("it is empty")
		}
		return u, nil
	}
	// The object may be of any type that a user wrote.
	defer func() {
		if value := recover(); value != nil {
			err = &manifests.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
	gvk := object.GetObjectKind().GroupVersionKind()
	if gvk.Empty() {
		if gvk, err = apiutil.GVKForObject(object, scheme.Scheme); err != nil {
			return nil, fmt.Errorf("it has no apiVersion and kind: %w", err)
		}
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(object)
	if err != nil {
		return nil, err
	}
	u := &unstructured.Unstructured{Object: content}
	u.SetGroupVersionKind(gvk)
	return u, nil
}

// ToObjects returns the maps as objects.
func ToObjects(list []*unstructured.Unstructured) []client.Object {
	objects := make([]client.Object, len(list))
	for i, u := range list {
		objects[i] = u
	}
	return objects
}

// Name returns how errors call an object.
func Name(u *unstructured.Unstructured) string {
	if u.GetNamespace() == "" {
		return u.GetKind() + " " + u.GetName()
	}
	return u.GetKind() + " " + u.GetNamespace() + "/" + u.GetName()
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package changes

import (
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/guard"
)

// ContentChanged reports whether two states of an object differ in more than status and metadata.
// It does not rely on metadata.generation, which many kinds lack, such as ConfigMap, and which
// other kinds increase for status, too. Of an object of which only the metadata is there, the
// generation decides, or the resourceVersion if there is none: then every write counts, also the
// write of a finalizer.
func ContentChanged(oldObj, newObj client.Object) bool {
	switch o := oldObj.(type) {
	case *metav1.PartialObjectMetadata:
		if oldObj.GetGeneration() > 0 && newObj.GetGeneration() > 0 {
			return oldObj.GetGeneration() != newObj.GetGeneration()
		}
		return AnythingChanged(oldObj, newObj)
	case *unstructured.Unstructured:
		if n, ok := newObj.(*unstructured.Unstructured); ok {
			return !equal(contentOf(o), contentOf(n))
		}
	}
	a, b := reflect.Indirect(reflect.ValueOf(oldObj)), reflect.Indirect(reflect.ValueOf(newObj))
	if a.Type() != b.Type() || a.Kind() != reflect.Struct {
		return true
	}
	for i := range a.NumField() {
		if isContent(a.Type().Field(i)) && !equal(a.Field(i).Interface(), b.Field(i).Interface()) {
			return true
		}
	}
	return false
}

// equal reports whether two values mean the same.
func equal(a, b any) (same bool) {
	if guard.Call(func() error { same = equality.Semantic.DeepEqual(a, b); return nil }) != nil { // Semantic does not bear unexported fields
		return reflect.DeepEqual(a, b)
	}
	return same
}

// AnythingChanged reports whether two states of an object differ at all.
func AnythingChanged(oldObj, newObj client.Object) bool {
	return oldObj.GetResourceVersion() != newObj.GetResourceVersion()
}

// isContent reports whether a field of an API type is neither metadata nor status.
func isContent(field reflect.StructField) bool {
	switch field.Type {
	case reflect.TypeFor[metav1.TypeMeta](), reflect.TypeFor[metav1.ObjectMeta]():
		return false
	}
	name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
	return field.IsExported() && name != "status"
}

func contentOf(u *unstructured.Unstructured) map[string]any {
	content := map[string]any{}
	for key, value := range u.Object {
		switch key {
		case "apiVersion", "kind", "metadata", "status":
		default:
			content[key] = value
		}
	}
	return content
}

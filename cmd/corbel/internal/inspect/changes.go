// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package inspect

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/internal/owned"
)

// Change is what another client than the operator set of an object, as its managed fields show it. The managed fields do
// not say whether the operator had applied another value: a field that a client added counts, too. One that a client
// removed leaves no trace.
type Change struct {
	// Manager is the field manager, such as kubectl-edit.
	Manager string `json:"manager"`
	// At is when it wrote last.
	At metav1.Time `json:"at"`
	// Fields are what it set.
	Fields []Field `json:"fields"`
}

// Field is a field of a live object.
type Field struct {
	// Path leads to it, such as spec.template.spec.containers[name=api].image.
	Path string `json:"path"`
	// Value is its JSON. Values of a Secret are masked.
	Value string `json:"value"`
}

// controllers of Kubernetes write fields of objects that are not theirs as a part of their work.
var controllers = []string{"kube-controller-manager", "kubelet", "kube-scheduler", "kube-apiserver", "cloud-controller-manager"}

// changesBy returns what other clients than the reconciler set of an object, apart from its status and its scale. The
// object must be masked.
func changesBy(object *unstructured.Unstructured, reconciler string) []Change {
	ours := map[string]bool{}
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == reconciler {
			for _, field := range fieldsOf(object, entry) {
				ours[field.Path] = true
			}
		}
	}
	if len(ours) == 0 {
		return nil // an operator with another field manager wrote it: nothing can be told apart
	}
	var changes []Change
	for _, entry := range object.GetManagedFields() {
		if entry.Manager == reconciler || entry.Subresource != "" || slices.Contains(controllers, entry.Manager) {
			continue
		}
		change := Change{Manager: entry.Manager}
		if entry.Time != nil {
			change.At = *entry.Time
		}
		for _, field := range fieldsOf(object, entry) {
			byDesign := owned.ByDesign(object.GroupVersionKind().GroupKind(), entry.Manager, field.Path)
			if !ours[field.Path] && !byDesign && !strings.HasPrefix(field.Path, "status") {
				change.Fields = append(change.Fields, field)
			}
		}
		if len(change.Fields) > 0 {
			changes = append(changes, change)
		}
	}
	slices.SortFunc(changes, func(a, b Change) int { return a.At.Compare(b.At.Time) })
	return changes
}

// fieldsOf returns the leaves of what a manager set.
func fieldsOf(object *unstructured.Unstructured, entry metav1.ManagedFieldsEntry) []Field {
	var set map[string]any
	if entry.FieldsV1 == nil || json.Unmarshal(entry.FieldsV1.GetRawBytes(), &set) != nil {
		return nil
	}
	var fields []Field
	collect(&fields, "", set, object.Object)
	secret := object.GroupVersionKind() == corev1.SchemeGroupVersion.WithKind("Secret")
	for i := range fields {
		if secret && strings.HasPrefix(fields[i].Path, "metadata.annotations") {
			fields[i].Value = hidden
		}
	}
	slices.SortFunc(fields, func(a, b Field) int { return strings.Compare(a.Path, b.Path) })
	return fields
}

// collect follows a set of managed fields and the live object side by side.
func collect(fields *[]Field, path string, set map[string]any, live any) {
	for step, below := range set {
		if step == "." {
			continue
		}
		at, value := follow(path, step, live)
		inner, _ := below.(map[string]any)
		if _, dot := inner["."]; len(inner) > 1 || len(inner) == 1 && !dot {
			collect(fields, at, inner, value)
			continue
		}
		*fields = append(*fields, Field{Path: at, Value: jsonOf(value)})
	}
}

// follow takes one step: a field "f:name", an element of a list by keys "k:{...}", by value "v:..." or by position "i:n".
func follow(path, step string, live any) (at string, value any) {
	kind, rest, _ := strings.Cut(step, ":")
	switch kind {
	case "f":
		fields, _ := live.(map[string]any)
		if strings.ContainsAny(rest, "./") {
			return path + "[" + rest + "]", fields[rest]
		}
		return strings.TrimPrefix(path+"."+rest, "."), fields[rest]
	case "k":
		var keys map[string]any
		if json.Unmarshal([]byte(rest), &keys) != nil {
			break
		}
		elements, _ := live.([]any)
		for _, element := range elements {
			if fields, ok := element.(map[string]any); ok && hasKeys(fields, keys) {
				value = element
			}
		}
		if name, ok := keys["name"].(string); ok && len(keys) == 1 {
			return path + "[name=" + name + "]", value
		}
	case "v":
		var element any
		if json.Unmarshal([]byte(rest), &element) == nil {
			value = element
		}
	}
	return path + "[" + rest + "]", value
}

func hasKeys(fields, keys map[string]any) bool {
	for key, value := range keys {
		if !reflect.DeepEqual(fields[key], value) && fmt.Sprint(fields[key]) != fmt.Sprint(value) {
			return false
		}
	}
	return true
}

// maxValue bounds a value.
const maxValue = 200

func jsonOf(value any) string {
	if value == nil {
		return ""
	}
	serialised, err := json.Marshal(value)
	if err != nil {
		return ""
	}
	if text := []rune(string(serialised)); len(text) > maxValue {
		return string(text[:maxValue]) + "…"
	}
	return string(serialised)
}

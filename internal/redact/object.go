// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddObjects adds the content of every Secret among the objects, typed or not, also
// of Secrets in lists, and publishes the names of the objects. Objects may be of
// any type that a user wrote; what cannot be read holds nothing that could be sent.
func (s *Secrets) AddObjects(objects ...runtime.Object) {
	if s == nil {
		return
	}
	for _, object := range objects {
		s.addObject(object)
	}
}

func (s *Secrets) addObject(object runtime.Object) {
	defer func() { _ = recover() }() // a method of a user's type, or of a nil pointer
	if named, ok := object.(metav1.Object); ok {
		s.Publish(named.GetNamespace(), named.GetName())
	}
	switch o := object.(type) {
	case *corev1.Secret:
		s.AddData(o.Data)
		s.addStrings(o.StringData)
	case *corev1.SecretList:
		for i := range o.Items {
			s.addObject(&o.Items[i])
		}
	case *unstructured.UnstructuredList:
		for i := range o.Items {
			s.addObject(&o.Items[i])
		}
	case runtime.Unstructured:
		s.addContent(o.UnstructuredContent(), maxNesting)
	case *corev1.List:
		s.addEncoded(o)
	default:
		if kind := object.GetObjectKind().GroupVersionKind(); kind.Group == "" && kind.Kind == "Secret" {
			s.addEncoded(o)
		}
	}
}

func (s *Secrets) addEncoded(object any) {
	encoded, err := json.Marshal(object)
	if err != nil {
		return
	}
	var content map[string]any
	if json.Unmarshal(encoded, &content) == nil {
		s.addContent(content, maxNesting)
	}
}

// AddData adds the values of a Secret.
func (s *Secrets) AddData(data map[string][]byte) {
	for _, value := range data {
		s.Add(string(value))
	}
}

func (s *Secrets) addStrings(data map[string]string) {
	for _, value := range data {
		s.Add(value)
	}
}

// maxNesting is how deep lists may be in lists.
const maxNesting = 5

// addContent does not rely on the form being right: what is wrong in a Secret is
// what the server's messages repeat.
func (s *Secrets) addContent(content map[string]any, depth int) {
	if items, ok := content["items"].([]any); ok && depth > 0 {
		for _, item := range items {
			if child, ok := item.(map[string]any); ok {
				s.addContent(child, depth-1)
			}
		}
	}
	if content["kind"] != "Secret" || content["apiVersion"] != "v1" {
		return
	}
	if metadata, ok := content["metadata"].(map[string]any); ok {
		namespace, _ := metadata["namespace"].(string)
		name, _ := metadata["name"].(string)
		s.Publish(namespace, name)
	}
	for _, value := range leavesOf(content["data"], nil) {
		s.Add(value)
		if plain, err := base64.StdEncoding.DecodeString(value); err == nil {
			s.Add(string(plain))
		}
	}
	for _, value := range leavesOf(content["stringData"], nil) {
		s.Add(value)
	}
}

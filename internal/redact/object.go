// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"encoding/base64"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// AddObjects adds the content of every Secret among the objects, typed or not, also
// of Secrets in lists.
func (s *Secrets) AddObjects(objects ...runtime.Object) {
	if s == nil {
		return
	}
	for _, object := range objects {
		switch o := object.(type) {
		case *corev1.Secret:
			if o != nil {
				s.AddData(o.Data)
				s.addStrings(o.StringData)
			}
		case *corev1.SecretList:
			for i := range o.Items {
				s.AddData(o.Items[i].Data)
				s.addStrings(o.Items[i].StringData)
			}
		case *unstructured.Unstructured:
			if o != nil {
				s.addContent(o.Object, maxNesting)
			}
		case *unstructured.UnstructuredList:
			for i := range o.Items {
				s.addContent(o.Items[i].Object, maxNesting)
			}
		}
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

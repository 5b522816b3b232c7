// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"context"
	"encoding/base64"
	"encoding/json"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Client returns a client that adds every Secret that is read through it to the set.
func (s *Secrets) Client(inner client.Client) client.Client {
	if inner == nil || s == nil {
		return inner
	}
	return &addingClient{Client: inner, secrets: s}
}

type addingClient struct {
	client.Client
	secrets *Secrets
}

func (c *addingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, opts ...client.GetOption) error {
	err := c.Client.Get(ctx, key, obj, opts...)
	if err == nil {
		c.secrets.AddObjects(obj)
	}
	return err
}

func (c *addingClient) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	err := c.Client.List(ctx, list, opts...)
	if err == nil {
		c.secrets.AddObjects(list)
	}
	return err
}

// AddObjects adds the content of every Secret among the objects, typed or not, also
// of Secrets in lists, and publishes the names of the objects.
func (s *Secrets) AddObjects(objects ...runtime.Object) {
	if s == nil {
		return
	}
	for _, object := range objects {
		s.addObject(object)
	}
}

func (s *Secrets) addObject(object runtime.Object) {
	// An object may have a type that a user wrote, or be a nil pointer. If it cannot be
	// read, it holds nothing that could be sent.
	defer func() { _ = recover() }()
	if named, ok := object.(metav1.Object); ok {
		s.Publish(named.GetNamespace(), named.GetName())
	}
	switch o := object.(type) {
	case *corev1.Secret:
		for _, value := range o.Data {
			s.Add(string(value))
		}
		for _, value := range o.StringData {
			s.Add(value)
		}
	case *corev1.SecretList:
		for i := range o.Items {
			s.addObject(&o.Items[i])
		}
	case runtime.Unstructured:
		s.addContent(o.UnstructuredContent(), maxNesting)
	default:
		_, isList := object.(*corev1.List)
		if kind := object.GetObjectKind().GroupVersionKind(); !isList && (kind.Group != "" || kind.Kind != "Secret") {
			return
		}
		encoded, err := json.Marshal(object)
		if err != nil {
			return
		}
		var content map[string]any
		if json.Unmarshal(encoded, &content) == nil {
			s.addContent(content, maxNesting)
		}
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
	s.addLeaves(content["data"], true)
	s.addLeaves(content["stringData"], false)
}

func (s *Secrets) addLeaves(value any, encoded bool) {
	switch v := value.(type) {
	case string:
		s.Add(v)
		if plain, err := base64.StdEncoding.DecodeString(v); encoded && err == nil {
			s.Add(string(plain))
		}
	case []any:
		for _, child := range v {
			s.addLeaves(child, encoded)
		}
	case map[string]any:
		for _, child := range v {
			s.addLeaves(child, encoded)
		}
	}
}

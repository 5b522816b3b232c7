// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation"
)

// The kinds of objects that references of this package lead to.
const (
	configMapKind = "ConfigMap"
	secretKind    = "Secret"
)

var originTypes = map[string]schema.GroupVersionResource{
	configMapKind: corev1.SchemeGroupVersion.WithResource("configmaps"),
	secretKind:    corev1.SchemeGroupVersion.WithResource("secrets"),
}

// origin is what a reference names.
type origin struct {
	kind, name string
	// wholly: the whole object is meant. Otherwise the key, or else the first of
	// the fallback keys that exists.
	wholly bool
	key    string
}

// content is what an object holds, by key. Its values are those of the object.
type content map[string][]byte

// loadable is a reference of this package.
type loadable interface {
	origin() origin
	// accept takes over the content of the object, less what the key does not name.
	accept(chosen content)
	// loaded returns what was accepted; nil means nothing.
	loaded() content
}

func (r *ConfigMapReference) origin() origin {
	return origin{kind: configMapKind, name: r.Name, wholly: true}
}

func (r *ConfigMapReference) accept(chosen content) {
	r.data = make(map[string]string, len(chosen))
	for key, value := range chosen {
		r.data[key] = string(value)
	}
}

func (r *ConfigMapReference) loaded() content {
	if r.data == nil {
		return nil
	}
	loaded := make(content, len(r.data))
	for key, value := range r.data {
		loaded[key] = []byte(value)
	}
	return loaded
}

func (r *ConfigMapKeyReference) origin() origin {
	return origin{kind: configMapKind, name: r.Name, key: r.Key}
}

func (r *ConfigMapKeyReference) accept(chosen content) {
	for _, value := range chosen {
		r.value = new(string(value))
	}
}

func (r *ConfigMapKeyReference) loaded() content {
	if r.value == nil {
		return nil
	}
	return content{"": []byte(*r.value)}
}

func (r *SecretReference) origin() origin {
	return origin{kind: secretKind, name: r.Name, wholly: true}
}

func (r *SecretReference) accept(chosen content) {
	r.data = make(map[string][]byte, len(chosen))
	maps.Copy(r.data, chosen)
}

func (r *SecretReference) loaded() content { return r.data }

func (r *SecretKeyReference) origin() origin {
	return origin{kind: secretKind, name: r.Name, key: r.Key}
}

func (r *SecretKeyReference) accept(chosen content) {
	for _, value := range chosen {
		r.value = append([]byte{}, value...)
	}
}

func (r *SecretKeyReference) loaded() content {
	if r.value == nil {
		return nil
	}
	return content{"": r.value}
}

// check returns the mistakes of what a person wrote.
func (s origin) check(fallbacks []string) []error {
	var mistakes []error
	if s.name == "" {
		mistakes = append(mistakes, fmt.Errorf("the name of the %s is missing", s.kind))
	} else if problems := validation.IsDNS1123Subdomain(s.name); len(problems) > 0 {
		mistakes = append(mistakes, fmt.Errorf("%s %q: %s", s.kind, s.name, strings.Join(problems, ", ")))
	}
	switch problems := validation.IsConfigMapKey(s.key); {
	case s.wholly:
	case s.key == "" && len(fallbacks) == 0:
		mistakes = append(mistakes, fmt.Errorf("the key in %s %s is missing", s.kind, s.name))
	case s.key != "" && len(problems) > 0:
		mistakes = append(mistakes, fmt.Errorf("key %q in %s %s: %s", s.key, s.kind, s.name, strings.Join(problems, ", ")))
	}
	return mistakes
}

// choose returns the part of the content that the reference names, or what is missing.
func (s origin) choose(all content, fallbacks []string) (chosen content, missing string) {
	if s.wholly {
		return all, ""
	}
	keys := fallbacks
	if s.key != "" {
		keys = []string{s.key}
	}
	for _, key := range keys {
		if value, ok := all[key]; ok {
			return content{key: value}, ""
		}
	}
	if len(keys) == 1 {
		return nil, "has no key " + keys[0]
	}
	return nil, "has none of the keys " + strings.Join(keys, ", ")
}

// parts are the content as a list of strings that no other content shares.
func (c content) parts() []string {
	parts := make([]string, 0, 2*len(c))
	for _, key := range slices.Sorted(maps.Keys(c)) {
		parts = append(parts, key, string(c[key]))
	}
	return parts
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

func annotated(object *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	if value == "" {
		return object
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[engineName+"/"+key] = value
	object.SetAnnotations(annotations)
	return object
}

func TestMissingNamespacesAreCreatedUnlessTheComponentOrTheOptionsSayOtherwise(t *testing.T) {
	create, dont := v1alpha1.MissingNamespacesPolicyCreate, v1alpha1.MissingNamespacesPolicyDoNotCreate
	for name, test := range map[string]struct {
		options, component v1alpha1.MissingNamespacesPolicy
		want               bool
	}{
		"the default is to create":                   {"", "", true},
		"the option forbids it":                      {dont, "", false},
		"the component forbids it":                   {"", dont, false},
		"the component allows it against the option": {dont, create, true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			options := reconciler.ReconcilerOptions{}
			if test.options != "" {
				options.MissingNamespacesPolicy = &test.options
			}
			b.interpose(t, options)
			elsewhere := config("a", "1")
			elsewhere.SetNamespace(b.namespace + "-more")
			request := b.request(elsewhere, config("b", "1"))
			request.Policies.MissingNamespaces = test.component
			outcome, err := b.engine.Apply(t.Context(), request)
			if created := err == nil && outcome.Done(); created != test.want {
				t.Errorf("created: %t, want %t; %v", created, test.want, err)
			}
			if there := b.stands(namespaceOf(b.namespace + "-more")); there != test.want {
				t.Errorf("the namespace is there: %t", there)
			}
			if b.get("b") == nil {
				t.Error("the missing namespace holds back an object in another one")
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
)

// applyFor applies with the policies of a component.
func (b *bench) applyFor(policies reconciler.Policies, objects ...client.Object) (reconciler.Outcome, error) {
	b.t.Helper()
	outcome, err := b.engine.Apply(b.t.Context(), reconciler.ApplyRequest{
		Owner: b.owner(), Namespace: b.namespace, Objects: objects, Inventory: b.inventory, Record: b.record, Policies: policies,
	})
	b.inventory = outcome.Inventory
	return outcome, err
}

// exists reports whether there is an object that is not being deleted.
func (b *bench) exists(object *unstructured.Unstructured) bool {
	b.t.Helper()
	live := object.DeepCopy()
	err := b.Get(b.t.Context(), client.ObjectKeyFromObject(object), live)
	if client.IgnoreNotFound(err) != nil {
		b.t.Fatal(err)
	}
	return err == nil && live.GetDeletionTimestamp() == nil
}

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

func pointerTo[P ~string](p P) *P {
	if p == "" {
		return nil
	}
	return &p
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
			b.interpose(t, reconciler.ReconcilerOptions{MissingNamespacesPolicy: pointerTo(test.options)})
			elsewhere := config("a", "1")
			elsewhere.SetNamespace(b.namespace + "-more")
			outcome, err := b.applyFor(reconciler.Policies{MissingNamespaces: test.component}, elsewhere, config("b", "1"))
			if created := err == nil && outcome.Done(); created != test.want {
				t.Errorf("created: %t, want %t; %v", created, test.want, err)
			}
			getErr := b.Get(context.Background(), client.ObjectKey{Name: b.namespace + "-more"}, &corev1.Namespace{})
			if there := getErr == nil; there != test.want {
				t.Errorf("the namespace: %v", getErr)
			}
			if b.get("b") == nil {
				t.Error("the missing namespace holds back an object in another one")
			}
		})
	}
}

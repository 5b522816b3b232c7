// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package reconciler_test

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// mustCreate creates objects as another client.
func (b *bench) mustCreate(objects ...client.Object) {
	b.t.Helper()
	for _, object := range objects {
		if err := b.Create(b.t.Context(), object); err != nil {
			b.t.Fatal(err)
		}
	}
}

// levels are the three levels on which a policy can be set; empty is not set.
type levels[P ~string] struct {
	options, component P
	annotation         string
}

// The precedence of policies: annotation, component, options, default.
func cases[P ~string](fallback, other P, kebab string) map[string]struct {
	levels levels[P]
	want   P
} {
	return map[string]struct {
		levels levels[P]
		want   P
	}{
		"the default holds if nothing is set":             {levels[P]{}, fallback},
		"the option overrides the default":                {levels[P]{options: other}, other},
		"the component overrides the option":              {levels[P]{options: other, component: fallback}, fallback},
		"the component overrides the default":             {levels[P]{component: other}, other},
		"the annotation overrides the component":          {levels[P]{options: fallback, component: fallback, annotation: kebab}, other},
		"the annotation overrides the option":             {levels[P]{options: fallback, annotation: kebab}, other},
		"the annotation may be written in CamelCase, too": {levels[P]{component: fallback, annotation: string(other)}, other},
	}
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

func TestPrecedenceOfTheAdoptionPolicy(t *testing.T) {
	for name, test := range cases(v1alpha1.AdoptionPolicyIfUnowned, v1alpha1.AdoptionPolicyAlways, "always") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.interpose(t, reconciler.ReconcilerOptions{AdoptionPolicy: pointerTo(test.levels.options)})
			b.mustCreate(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				Namespace: b.namespace, Name: "a", Annotations: map[string]string{"meta.helm.sh/release-name": "web"},
			}})
			_, err := b.applyFor(reconciler.Policies{Adoption: test.levels.component},
				annotated(config("a", "ours"), "adoption-policy", test.levels.annotation))
			if taken, want := err == nil, test.want == v1alpha1.AdoptionPolicyAlways; taken != want {
				t.Errorf("adopted: %t, want %t; %v", taken, want, err)
			}
		})
	}
}

func TestPrecedenceOfTheUpdatePolicy(t *testing.T) {
	for name, test := range cases(v1alpha1.UpdatePolicyReplace, v1alpha1.UpdatePolicyRecreate, "recreate") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.interpose(t, reconciler.ReconcilerOptions{UpdatePolicy: pointerTo(test.levels.options)})
			apply := func(value string) *corev1.ConfigMap {
				t.Helper()
				outcome, err := b.applyFor(reconciler.Policies{Update: test.levels.component},
					annotated(config("a", value), "update-policy", test.levels.annotation))
				if err != nil || !outcome.Done() {
					t.Fatalf("%v, waiting for %v", err, outcome.Waiting)
				}
				return b.get("a")
			}
			before, after := apply("1"), apply("2")
			if recreated, want := before.UID != after.UID, test.want == v1alpha1.UpdatePolicyRecreate; recreated != want {
				t.Errorf("recreated: %t, want %t", recreated, want)
			}
		})
	}
}

func TestPrecedenceOfTheDeletePolicy(t *testing.T) {
	for name, test := range cases(v1alpha1.DeletePolicyDelete, v1alpha1.DeletePolicyOrphan, "orphan") {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.interpose(t, reconciler.ReconcilerOptions{DeletePolicy: pointerTo(test.levels.options)})
			policies := reconciler.Policies{Delete: test.levels.component}
			for _, objects := range [][]client.Object{
				{annotated(config("a", "1"), "delete-policy", test.levels.annotation), config("b", "1")}, {config("b", "1")},
			} {
				if outcome, err := b.applyFor(policies, objects...); err != nil || !outcome.Done() {
					t.Fatalf("%v, waiting for %v", err, outcome.Waiting)
				}
			}
			if left, want := b.get("a") != nil, test.want == v1alpha1.DeletePolicyOrphan; left != want {
				t.Errorf("orphaned: %t, want %t", left, want)
			}
		})
	}
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

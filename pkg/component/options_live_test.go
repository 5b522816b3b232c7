// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
)

func managersOf(object client.Object) []string {
	var managers []string
	for _, entry := range object.GetManagedFields() {
		managers = append(managers, entry.Manager)
	}
	return managers
}

func TestFieldOwnerFinalizerSchemeAndClientAreThoseOfTheOptions(t *testing.T) {
	var counts atomic.Int64
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		FieldOwner: new("another-owner"), Finalizer: new("test.corbel.run/mine"), SchemeBuilder: definitions{},
		Controller: component.ControllerOptions{NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			plain, err := client.New(config, options)
			return &counted{Client: plain, gets: &counts}, err
		}},
	}, func(b *bed) {
		b.reconciler.WithPreReconcileHook(func(ctx context.Context, c client.Client, _ *widget.Widget) error {
			before := counts.Load()
			if err := manifests.FromContext(ctx).LocalClient.Get(ctx, b.key("main"), &widget.Widget{}); err != nil || counts.Load() != before+1 {
				b.Errorf("the client of the context is another one: %v", err)
			}
			if c != b.manager.GetClient() {
				b.Error("the client of a hook is not the manager's")
			}
			target, err := component.ClientFromContext(ctx)
			if err == nil {
				err = target.List(ctx, &apiextensionsv1.CustomResourceDefinitionList{})
			}
			return err
		})
	})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w, dependent := b.until(v1alpha1.StateReady), &corev1.ConfigMap{}
	b.check(b.client.Get(t.Context(), b.key("a"), dependent))
	if got := managersOf(dependent); !slices.Equal(got, []string{"another-owner"}) {
		t.Errorf("the dependent object has the field managers %q", got)
	}
	if got := managersOf(w); !slices.Contains(got, "another-owner") || !slices.Equal(w.Finalizers, []string{"test.corbel.run/mine"}) {
		t.Errorf("the component has the field managers %q and the finalizers %q", got, w.Finalizers)
	}
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
	if _, ok := b.configMap("a"); ok {
		t.Error("the dependent object was still there")
	}
}

// definitions adds a type that the manager does not know.
type definitions struct{}

func (definitions) AddToScheme(scheme *runtime.Scheme) error {
	return apiextensionsv1.AddToScheme(scheme)
}

type counted struct {
	client.Client
	gets *atomic.Int64
}

func (c *counted) Get(ctx context.Context, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
	c.gets.Add(1)
	return c.Client.Get(ctx, key, object, options...)
}

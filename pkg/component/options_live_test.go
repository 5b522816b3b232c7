// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

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

func TestTheFieldOwnerIsTheNameOfAllWritesAndTheReconcilerNameByDefault(t *testing.T) {
	for name, options := range map[string]component.ReconcilerOptions{operatorName: {}, "another-owner": {FieldOwner: new("another-owner")}} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(configMaps), options)
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			w := b.until(v1alpha1.StateReady)
			dependent := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("a"), dependent))
			if got := managersOf(dependent); !slices.Equal(got, []string{name}) {
				t.Errorf("the dependent object has the field managers %q", got)
			}
			if got := managersOf(w); !slices.Contains(got, name) {
				t.Errorf("the component has the field managers %q", got)
			}
		})
	}
}

func TestTheFinalizerIsTheOneOfTheOptions(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{Finalizer: new("test.corbel.run/mine")})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	w := b.until(v1alpha1.StateReady)
	if !slices.Equal(w.Finalizers, []string{"test.corbel.run/mine"}) {
		t.Errorf("finalizers %q", w.Finalizers)
	}
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
	if _, ok := b.configMap("a"); ok {
		t.Error("the dependent object was still there")
	}
}

func TestTheSchemeBuilderAddsTypesToTheClientOfTheTarget(t *testing.T) {
	var known, unknown error
	look := func(err *error) func(b *bed) {
		return func(b *bed) {
			b.reconciler.WithPreReconcileHook(func(ctx context.Context, _ client.Client, _ *widget.Widget) error {
				c, contextErr := component.ClientFromContext(ctx)
				if contextErr != nil {
					return contextErr
				}
				*err = c.List(ctx, &apiextensionsv1.CustomResourceDefinitionList{})
				return nil
			})
		}
	}
	without := newBed(t, rendering(), component.ReconcilerOptions{}, look(&unknown))
	without.create(widget.Spec{})
	without.reconcile()
	with := newBed(t, rendering(), component.ReconcilerOptions{SchemeBuilder: definitions{}}, look(&known))
	with.create(widget.Spec{})
	with.reconcile()
	if known != nil || unknown == nil {
		t.Errorf("with the builder: %v; without: %v", known, unknown)
	}
}

func TestTheClientOfTheOptionsReadsAndWritesComponents(t *testing.T) {
	var counts atomic.Int64
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Controller: component.ControllerOptions{NewClient: func(config *rest.Config, options client.Options) (client.Client, error) {
			plain, err := client.New(config, options)
			return &counted{Client: plain, gets: &counts}, err
		}},
	}, func(b *bed) {
		b.reconciler.WithPreReconcileHook(func(ctx context.Context, _ client.Client, _ *widget.Widget) error {
			local := manifests.FromContext(ctx).LocalClient
			before := counts.Load()
			err := local.Get(ctx, b.key("main"), &widget.Widget{})
			if counts.Load() != before+1 {
				b.Error("the client of the context is another one")
			}
			return err
		})
	})
	b.create(widget.Spec{})
	b.until(v1alpha1.StateReady)
	if counts.Load() == 0 {
		t.Error("nothing was read by it")
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

func TestAComponentOutsideOfTheShardIsNotTouchedUntilItsLabelsChange(t *testing.T) {
	b := newBed(t, rendering(), component.ReconcilerOptions{})
	manager := must(ctrl.NewManager(must(b.env.ConfigFor(b.user, "system:masters"))(t), ctrl.Options{
		Scheme: newScheme(t), Metrics: metricsserver.Options{BindAddress: "0"}, Controller: b.manager.GetControllerOptions(),
		Cache: cache.Options{DefaultNamespaces: map[string]cache.Config{b.namespace: {}}},
	}))(t)
	r := component.NewReconciler[*widget.Widget](operatorName, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{
		Controller: component.ControllerOptions{LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"shard": "a"}}},
	})
	b.check(r.SetupWithManager(manager))
	for name, shard := range map[string]string{"ours": "a", "theirs": "b"} {
		b.check(b.client.Create(t.Context(), &widget.Widget{
			ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name, Labels: map[string]string{"shard": shard}},
			Spec:       widget.Spec{Values: map[string]string{name: "1"}},
		}))
	}
	b.start(manager)
	stateOf := func(name string) v1alpha1.State {
		w := &widget.Widget{}
		b.check(b.client.Get(t.Context(), b.key(name), w))
		return w.Status.State
	}
	b.comesTo(func() (string, bool) { s := stateOf("ours"); return string(s), s == v1alpha1.StateReady })
	b.check(r.Trigger(b.namespace, "theirs")) // also if a client asks for it
	move := func(name, shard string) {
		w := &widget.Widget{}
		b.check(b.client.Get(t.Context(), b.key(name), w))
		w.Labels["shard"] = shard
		w.Spec.Values[name] = "moved"
		b.check(b.client.Update(t.Context(), w))
	}
	move("ours", "b")
	w := &widget.Widget{}
	b.check(b.client.Get(t.Context(), b.key("theirs"), w))
	if w.Status.State != "" || len(w.Finalizers) > 0 {
		t.Errorf("it was touched: %v, %v", w.Status.State, w.Finalizers)
	}
	move("theirs", "a")
	b.comesTo(func() (string, bool) { s := stateOf("theirs"); return string(s), s == v1alpha1.StateReady })
	if value, _ := b.configMap("ours"); value != "1" {
		t.Errorf("what left the shard is still reconciled: %q", value)
	}
	for _, write := range b.writes() {
		if strings.Contains(write, " ours") && strings.Contains(write, "delete") {
			t.Errorf("what left the shard was removed: %s", write)
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// TestATypeThatComesLaterIsNoticed has two components that wait for one type. The operator asks for the type once for both.
func TestATypeThatComesLaterIsNoticed(t *testing.T) {
	const group = "late.corbel.run"
	generator := manifests.GeneratorFunc(func(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
		return []client.Object{&unstructured.Unstructured{Object: map[string]any{"apiVersion": group + "/v1", "kind": "Gear", "metadata": map[string]any{"name": name}}}}, nil
	})
	var lock sync.Mutex
	var asked []time.Time
	count := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if lock.Lock(); strings.HasSuffix(r.URL.Path, "/apis/"+group+"/v1") {
				asked = append(asked, time.Now())
			}
			lock.Unlock()
			return next.RoundTrip(r)
		})
	}
	b := newBed(t, generator, component.ReconcilerOptions{}, func(b *bed) { b.manager = newManagerVia(t, b.env, b.user, count) })
	names := []string{"main", "second"}
	for _, name := range names {
		b.check(b.client.Create(t.Context(), &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}))
	}
	b.start(b.manager)
	all := func(state v1alpha1.State, reason string) (string, bool) {
		for _, name := range names {
			w := &widget.Widget{}
			b.check(b.client.Get(t.Context(), b.key(name), w))
			if got, why, message := w.Status.GetState(); got != state || why != reason {
				return name + ": " + why + ": " + message, false
			}
		}
		return "", true
	}
	b.comesTo(func() (string, bool) { return all(v1alpha1.StateError, vocabulary.ReasonInvalid) })
	lock.Lock()
	asked = nil
	lock.Unlock()
	b.comesTo(func() (string, bool) {
		lock.Lock()
		defer lock.Unlock()
		return "fewer than two requests", len(asked) >= 2
	})
	if between := asked[1].Sub(asked[0]); between < 3*time.Second {
		t.Errorf("the operator asks again after %s", between)
	}

	definition := read("{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: gears." + group + "}, spec: {group: " + group +
		", scope: Namespaced, names: {plural: gears, singular: gear, kind: Gear, listKind: GearList}, " +
		"versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]}}")
	b.check(b.client.Create(t.Context(), definition))
	t.Cleanup(func() { _ = b.client.Delete(context.WithoutCancel(t.Context()), definition) })
	b.comesTo(func() (string, bool) { return all(v1alpha1.StateReady, vocabulary.ReasonReady) })
}

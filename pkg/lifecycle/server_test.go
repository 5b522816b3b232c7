// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package lifecycle_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/corbel-run/corbel/pkg/conditions"
	"github.com/corbel-run/corbel/pkg/conditions/conditionstest"
	"github.com/corbel-run/corbel/pkg/lifecycle"
	"github.com/corbel-run/corbel/test/env"
	"github.com/corbel-run/corbel/test/widget"
	"github.com/corbel-run/corbel/test/widget/installed"
)

func TestMain(m *testing.M) { os.Exit(env.Main(m, env.Options{})) }

var request = reconcile.Request{NamespacedName: client.ObjectKey{Namespace: "default", Name: "a"}}

// onServer makes a widget on the real server, and a loop that looks after it.
func onServer(t *testing.T, world pumps, change func(*apiextensionsv1.CustomResourceDefinition)) (client.Client, *lifecycle.Reconciler[*widget.Widget], *events.FakeRecorder) {
	t.Helper()
	c := installed.On(t, env.Shared(t), change)
	w := &widget.Widget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"}, Spec: widget.Spec{Size: 5}}
	if err := c.Create(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	recorder := events.NewFakeRecorder(10)
	loop, err := lifecycle.NewReconciler(world, lifecycle.Options[*widget.Widget]{Client: c, Finalizer: finalizer, Recorder: recorder, Jitter: -1})
	if err != nil {
		t.Fatal(err)
	}
	return c, loop, recorder
}

func TestServerSeesAWholeLife(t *testing.T) {
	world := pumps{}
	c, loop, _ := onServer(t, world, nil)
	w := &widget.Widget{}
	var resourceVersion string
	for range 2 {
		if out, err := loop.Reconcile(t.Context(), request); err != nil || out.RequeueAfter != interval {
			t.Fatalf("returned %v, %v", out, err)
		}
		if err := c.Get(t.Context(), request.NamespacedName, w); err != nil {
			t.Fatal(err)
		}
		if resourceVersion != "" && w.ResourceVersion != resourceVersion {
			t.Error("the second reconcile wrote something")
		}
		resourceVersion = w.ResourceVersion
	}
	conditionstest.Check(t, w)
	if world["a"] != 5 || !conditions.IsReady(w) || w.Status.ObservedGeneration != w.Generation {
		t.Errorf("%v, %+v", world, w.Status)
	}
	if err := c.Delete(t.Context(), w); err != nil {
		t.Fatal(err)
	}
	if _, err := loop.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if err := c.Get(t.Context(), request.NamespacedName, w); err == nil || client.IgnoreNotFound(err) != nil || len(world) != 0 {
		t.Errorf("%v, %v", world, err)
	}
}

func TestServerWithAnOutdatedDefinition(t *testing.T) {
	for _, tc := range []struct {
		name    string
		change  func(*apiextensionsv1.CustomResourceDefinition)
		message string // in Ready, or in the event if there is no Ready
		ready   bool
	}{
		{"a field is missing", func(crd *apiextensionsv1.CustomResourceDefinition) { delete(widget.StatusSchema(crd), "record") }, "status.record", true},
		{"no status subresource", func(crd *apiextensionsv1.CustomResourceDefinition) { crd.Spec.Versions[0].Subresources = nil }, "status subresource", true},
		{"not even conditions", func(crd *apiextensionsv1.CustomResourceDefinition) { delete(widget.StatusSchema(crd), "conditions") }, "status.conditions", false},
		{"no status at all", func(crd *apiextensionsv1.CustomResourceDefinition) {
			delete(crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties, "status")
		}, "status.conditions, status.observedGeneration", false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			world := pumps{}
			c, loop, recorder := onServer(t, world, tc.change)
			var generations []int64
			w := &widget.Widget{}
			for i := range 4 {
				want := min(time.Duration(i+1)*5, 15) * time.Second // it may be corrected at any time
				if out, err := loop.Reconcile(context.WithoutCancel(t.Context()), request); err != nil || out.RequeueAfter != want {
					t.Errorf("returned %v, %v, want %s", out, err, want)
				}
				if err := c.Get(t.Context(), request.NamespacedName, w); err != nil {
					t.Fatal(err)
				}
				generations = append(generations, w.Generation)
			}
			if generations[3] > 2 {
				t.Errorf("it does not come to rest: generations %v", generations)
			}
			if tc.name != "not even conditions" && len(world) != 0 {
				t.Error("the handler acted although nothing was on record")
			}
			said := <-recorder.Events
			if tc.ready {
				conditionstest.Check(t, w)
				said = conditions.Get(w, "Ready").Message
			}
			if !strings.Contains(said, tc.message) {
				t.Errorf("it says %q", said)
			}
		})
	}
}

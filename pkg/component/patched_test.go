// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestTheEngineGetsWhatThePatchesOfTheComponentLeave(t *testing.T) {
	tests := []struct {
		name       string
		spec       PatchesSpec
		image, err string
	}{
		{name: "none", image: "web:1"},
		{name: "a patch, then an image", image: "other:2", spec: PatchesSpec{
			Patches: []v1alpha1.Patch{{Patch: "{apiVersion: v1, kind: Pod, metadata: {name: a}, spec: {containers: [{name: web, image: \"changed:1\"}]}}"}},
			Images:  []v1alpha1.Image{{Name: "changed", NewName: "other", NewTag: "2"}},
		}},
		{name: "a patch of nothing", err: "patches of the component: patch 1 of 1: there is no Pod b of v1 to patch",
			spec: PatchesSpec{Patches: []v1alpha1.Patch{{Patch: "{apiVersion: v1, kind: Pod, metadata: {name: b}}"}}}},
		{name: "a text that expands to gigabytes", err: "patches of the component: patch 1 of 1: line 1: the aliases of the document expand to more than 16777216 bytes",
			spec: PatchesSpec{Patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Pod"},
				Patch: "- {op: add, path: /spec/a, value: &a " + strings.Repeat("x", 10_000) + "}\n- {op: add, path: /spec/b, value: [" + strings.Repeat("*a, ", 10_000) + "]}"}}}},
		{name: "a mistake", err: "patches of the component: patch 1 of 1: it is empty", spec: PatchesSpec{Patches: []v1alpha1.Patch{{}}}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			engine := &fakeEngine{record: true, outcome: reconciler.Outcome{Inventory: someInventory, Settled: 1, Total: 1}}
			h, _ := testHandler(t, engine)
			h.generator = generatorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
				pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
				return []client.Object{pod}, nil
			})
			_, err := h.CreateOrUpdate(t.Context(), withSpec(widgetSpec{PatchesSpec: test.spec}), func(context.Context) error { return nil })
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(engine.applied) > 0 {
					t.Errorf("got the error %v, and %d calls of the engine", err, len(engine.applied))
				}
				if v := judge(facts{err: err}); !v.stalled || v.reason != v1alpha1.ReasonSpecInvalid {
					t.Errorf("it is judged %+v, want stalled: only a change of the spec helps", v)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			encoded, err := json.Marshal(engine.applied[0].Objects[0])
			if err != nil || !strings.Contains(string(encoded), `"image":"`+test.image+`"`) {
				t.Errorf("the engine got %s", encoded)
			}
		})
	}
}

func TestPatchesOfASpecThatIsNotThere(t *testing.T) {
	var none *PatchesSpec
	if none.GetPatches() != nil || none.GetImages() != nil {
		t.Error("they are not empty")
	}
}

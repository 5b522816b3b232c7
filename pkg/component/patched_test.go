// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
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
			h.revisions.Renderer.Generator = generatorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}}}
				pod.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Pod"))
				return []client.Object{pod}, nil
			})
			_, err := h.applier.createOrUpdate(t.Context(), withSpec(widgetSpec{PatchesSpec: test.spec}), func(context.Context) error { return nil })
			if test.err != "" {
				if err == nil || !strings.Contains(err.Error(), test.err) || len(engine.applied) > 0 {
					t.Errorf("got the error %v, and %d calls of the engine", err, len(engine.applied))
				}
				if v := verdict.Evaluate(verdict.Facts{Err: err}); !v.Stalled || v.Reason != vocabulary.ReasonSpecInvalid {
					t.Errorf("the verdict is %+v, want stalled: only a change of the spec helps", v)
				}
				return
			}
			check(t, err)
			encoded, err := json.Marshal(engine.applied[0].Objects[0])
			if err != nil || !strings.Contains(string(encoded), `"image":"`+test.image+`"`) {
				t.Errorf("the engine got %s", encoded)
			}
		})
	}
}

func TestAPatchOfAHookThatRunsAtAnotherMomentIsNoMistake(t *testing.T) {
	hook := func(name, moment string) string {
		return "---\napiVersion: batch/v1\nkind: Job\nmetadata: {name: " + name + ", annotations: {helm.sh/hook: " + moment + "}}\n"
	}
	generator, err := helm.New(fstest.MapFS{
		"chart/Chart.yaml": {Data: []byte("apiVersion: v2\nname: chart\nversion: 1.0.0\n")},
		"chart/templates/all.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n" +
			hook("first", "pre-install") + hook("later", "post-upgrade") +
			"{{- if .Release.IsInstall }}\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: welcome}\n{{- end }}\n")},
	}, "chart", helm.Options{})
	check(t, err)
	patch := func(kind, name string) v1alpha1.Patch {
		return v1alpha1.Patch{Patch: "{apiVersion: " + map[string]string{"Job": "batch/v1", "ConfigMap": "v1"}[kind] + ", kind: " + kind +
			", metadata: {name: " + name + ", labels: {patched: once}}}"}
	}
	more := v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Name: "a"}, Patch: `[{op: add, path: /data, value: {}}, {op: add, path: /data/one, value: "1"}]`}
	spec := PatchesSpec{Patches: []v1alpha1.Patch{more, patch("Job", "first"), patch("Job", "later"), patch("ConfigMap", "welcome"), patch("ConfigMap", "a")}}
	patched := func(spec PatchesSpec) manifests.Generator {
		return rendering.Patched(generator, false, func() ([]v1alpha1.Patch, []v1alpha1.Image) { return patchesOf(withSpec(widgetSpec{PatchesSpec: spec})) })
	}
	for _, test := range []struct {
		installation bool
		want         []string
	}{{true, []string{"a", "first", "welcome"}}, {false, []string{"a", "later"}}} {
		ctx := manifests.Context{ReconcilerName: "shop.example.com", Upgrade: !test.installation}.In(t.Context())
		objects, err := manifests.Generate(ctx, patched(spec), "shop", "web", types.UnstructurableMap{})
		if err != nil {
			t.Fatalf("installation %v: %v", test.installation, err)
		}
		var names []string
		for _, object := range objects {
			names = append(names, object.GetName())
			if object.GetLabels()["patched"] != "once" {
				t.Errorf("%s has the labels %v", object.GetName(), object.GetLabels())
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, test.want) {
			t.Errorf("installation %v: got %q, want %q", test.installation, names, test.want)
		}
		spec := PatchesSpec{Patches: []v1alpha1.Patch{patch("Job", "other")}}
		_, err = manifests.Generate(ctx, patched(spec), "shop", "web", types.UnstructurableMap{})
		if err == nil || !strings.Contains(err.Error(), "there is no Job other of batch/v1 to patch; a patch with a target may match nothing") {
			t.Errorf("a hook that the chart does not have: %v", err)
		}
	}
}

// TestNoPatchOfAUserReadsASecret: neither what is reported nor whether it is reported depends on the content of a Secret.
func TestNoPatchOfAUserReadsASecret(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s, labels: {app: a}}\ndata: {password: aHVudGVyMjI=}\n"
	const rest = "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, labels: {app: a}}\n---\n" +
		"apiVersion: example.com/v1\nkind: Secret\nmetadata: {name: other}\n---\n" +
		"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: l}, data: {password: aHVudGVyMjI=}}]\n"
	onSecret := &v1alpha1.PatchTarget{Kind: "Secret"}
	var copies []v1alpha1.Patch
	for _, annotation := range []string{"apply-order", "delete-policy", "depends-on", "ready-when", "status-hint"} {
		copies = append(copies, v1alpha1.Patch{Target: onSecret, Patch: "[{op: copy, from: /data/password, path: /metadata/annotations/shop.example.com~1" + annotation + "}]"})
	}
	label := "metadata: {labels: {patched: once}}"
	for name, test := range map[string]struct {
		patches []v1alpha1.Patch
		allowed bool
		patched string // the names of the objects with the label
		refused string // how the error names the patch; empty if there is none
	}{
		"copies into annotations": {patches: copies, refused: "patch 5 of 5"},
		"a question":              {patches: []v1alpha1.Patch{{Target: onSecret, Patch: "[{op: test, path: /data/password, value: aHVudGVyMjI=}]"}}, refused: "patch 1 of 1"},
		"a ready-when":            {patches: []v1alpha1.Patch{{Target: onSecret, Patch: `metadata: {annotations: {shop.example.com/ready-when: 'self.data.password > "a"'}}`}}, refused: "patch 1 of 1"},
		"no target":               {patches: []v1alpha1.Patch{{Patch: "{apiVersion: v1, kind: Secret, metadata: {name: s}, type: x}"}}, refused: "patch 1 of 1"},
		"a deletion":              {patches: []v1alpha1.Patch{{Target: onSecret, Patch: "$patch: delete"}}, refused: "patch 1 of 1"},
		"one kind, as an expression, of the group": {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Version: "v1", Kind: "^(Secret)$"}, Patch: label}}, refused: "patch 1 of 1"},
		"Secrets in a list":                        {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "List"}, Patch: "[{op: copy, from: /items/0/data/password, path: /items/0/metadata/name}]"}}},
		"all objects":                              {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{}, Patch: label}}, patched: "c other"},
		"two kinds":                                {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Secret|ConfigMap"}, Patch: label}}, patched: "c other"},
		"a name":                                   {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Name: "s"}, Patch: label}}},
		"another group":                            {patches: []v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Group: "example.com", Kind: "Secret"}, Patch: label}}, patched: "other"},
		"it is allowed":                            {patches: []v1alpha1.Patch{{Target: onSecret, Patch: label}}, allowed: true, patched: "s other"},
	} {
		t.Run(name, func(t *testing.T) {
			generator := rendering.Patched(generatorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
				decoded, err := document.Decode("all.yaml", []byte(secret+rest))
				var objects []client.Object
				for _, object := range decoded {
					objects = append(objects, object)
				}
				return objects, err
			}), test.allowed, func() ([]v1alpha1.Patch, []v1alpha1.Image) { return test.patches, nil })
			objects, err := manifests.Generate(t.Context(), generator, "shop", "web", types.UnstructurableMap{})
			if test.refused != "" {
				invalid := verdict.Evaluate(verdict.Facts{Err: err}).Reason == vocabulary.ReasonSpecInvalid
				if err == nil || !invalid || !strings.Contains(err.Error(), test.refused) || !strings.Contains(err.Error(), "option AllowSecretPatches") {
					t.Errorf("got the error %v", err)
				}
				return
			}
			if err != nil || len(objects) != 4 {
				t.Fatalf("got %d objects, %v", len(objects), err)
			}
			var patched []string
			for _, object := range objects {
				if object.GetLabels()["patched"] != "" {
					patched = append(patched, object.GetName())
				}
			}
			if got := strings.Join(patched, " "); got != test.patched {
				t.Errorf("patched are %s, want %s", got, test.patched)
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/conclude"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

func digestsOf(obj Component, found []references.Found, generator, key string) (revision.Digests, error) {
	source := &revision.Source{
		Self: &identity.Operator{Name: "test.corbel.run"}, DigestKey: fixedKey(key).Get,
		References: func(identity.Component) []references.Found { return found },
		Renderer: &rendering.Renderer{
			Generator: manifests.WithDigest(generatorFunc(nothing), generator),
			Patches:   func(obj identity.Component) ([]v1alpha1.Patch, []v1alpha1.Image) { return patchesOf(obj) },
		},
	}
	return source.Digests(context.Background(), obj)
}

func TestDigest(t *testing.T) {
	key, generator := "key", ""
	digest := func(t *testing.T, change func(*widget)) revision.Digests {
		t.Helper()
		obj := newWidget()
		obj.Annotations = map[string]string{"a": "1"}
		obj.Spec.Refs = &widgetReferences{Password: &SecretKeyReference{Name: "creds"}, Own: &ownReference{}}
		change(obj)
		found, _ := finderFor[*widget]().Find(obj.GetSpec())
		after, err := digestsOf(obj, found, generator, key)
		if err != nil || after.Component == "" || after.Revision == "" {
			t.Fatalf("digests %+v, error %v", after, err)
		}
		return after
	}
	before := digest(t, func(*widget) {})
	tests := []struct {
		name                string
		change              func(*widget)
		component, revision bool // are another one
	}{
		{"nothing changed", func(*widget) {}, false, false},
		{"the status", func(w *widget) { w.Status.Note, w.Status.Revision = "x", 7 }, false, false},
		{"what kubectl notes", func(w *widget) { w.Annotations["kubectl.kubernetes.io/last-applied-configuration"] = "{}" }, false, false},
		{"requests for a reconcile", func(w *widget) {
			w.Annotations["test.corbel.run/preview"] = "1779963751-mfrggzdfmztwq2lk"
			w.Annotations["test.corbel.run/reconcile-at"], w.Annotations["reconcile.fluxcd.io/requestedAt"] = "now", "now"
		}, false, false},
		{"labels, finalizers, resourceVersion", func(w *widget) {
			w.Labels, w.Finalizers, w.ResourceVersion = map[string]string{"a": "b"}, []string{"x"}, "9"
		}, false, false},
		{"an annotation", func(w *widget) { w.Annotations["a"] = "2" }, true, false},
		{"a part of the spec that is no parameter", func(w *widget) { w.Generation = 2 }, true, false},
		{"the timeout, suspension", func(w *widget) {
			w.Generation, w.Spec.Suspend, w.Spec.Timeout = 2, true, &types.Duration{Duration: time.Minute}
		}, true, false},
		{"a parameter", func(w *widget) { w.Spec.Size = 3 }, true, true},
		{"a patch", func(w *widget) { w.Generation, w.Spec.Patches = 2, []v1alpha1.Patch{{Patch: "{}"}} }, true, true},
		{"an image", func(w *widget) { w.Generation, w.Spec.Images = 2, []v1alpha1.Image{{Name: "a", NewTag: "2"}} }, true, true},
		{"what a reference of the package loaded", func(w *widget) { w.Spec.Refs.Password.value = []byte("2") }, true, true},
		{"that what is referred to is empty", func(w *widget) { w.Spec.Refs.Password.value = []byte{} }, true, true},
		{"what a reference of the author loaded", func(w *widget) { w.Spec.Refs.Own.loaded = "2" }, true, true},
		{"what the generator renders from", func(*widget) { generator = "another" }, true, true},
		{"the key", func(*widget) { key = "another" }, true, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			generator = ""
			after := digest(t, test.change)
			if changed := after.Component != before.Component; changed != test.component {
				t.Errorf("the component is another one: %v, want %v", changed, test.component)
			}
			if changed := after.Revision != before.Revision; changed != test.revision {
				t.Errorf("the revision is another one: %v, want %v", changed, test.revision)
			}
		})
	}
}

func TestMergedParametersPutTheOtherFieldsOverTheFreeFormOnes(t *testing.T) {
	type image struct {
		Tag *string `json:"tag,omitempty"`
	}
	type spec struct {
		TimeoutSpec `json:",inline"`
		Replicas    *int64 `json:"replicas,omitempty"`
		Enabled     *bool  `json:"enabled,omitempty"`
		Image       image  `json:"image"`
		Values      any    `json:"values,omitempty"`
	}
	got := MergedParameters(&spec{
		Replicas: new(int64(0)), Enabled: new(false), Image: image{Tag: new("2")},
		Values: map[string]any{"replicas": 3, "image": map[string]any{"tag": "1", "pullPolicy": "Always"}, "cache": nil},
	}, "values")
	want := map[string]any{
		"replicas": int64(0), "enabled": false, "image": map[string]any{"tag": "2", "pullPolicy": "Always"}, "cache": nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"image": map[string]any{}}, MergedParameters(&spec{}, "values")); diff != "" {
		t.Errorf("without free-form values (-want +got):\n%s", diff)
	}
	defer func() {
		if err, ok := recover().(error); !ok || !strings.Contains(err.Error(), "the field values must be an object") {
			t.Errorf("got %v", err)
		}
	}()
	MergedParameters(&spec{Values: "text"}, "values")
}

func TestParametersAreTheSpecWithoutItsConfiguration(t *testing.T) {
	w := newWidget()
	configured := types.Duration{Duration: time.Minute}
	w.Spec = widgetSpec{
		PlacementSpec: PlacementSpec{Namespace: "a", Name: "b"}, ClientSpec: ClientSpec{KubeConfig: &KubeConfigSpec{}},
		ImpersonationSpec: ImpersonationSpec{ServiceAccountName: "a"}, SuspensionSpec: SuspensionSpec{Suspend: true},
		RequeueSpec: RequeueSpec{RequeueInterval: &configured}, RetrySpec: RetrySpec{RetryInterval: &configured},
		TimeoutSpec: TimeoutSpec{Timeout: &configured}, ReapplySpec: ReapplySpec{ReapplyInterval: &configured},
		PolicySpec: PolicySpec{AdoptionPolicy: "Always", UpdatePolicy: "Replace", DeletePolicy: "Orphan", MissingNamespacesPolicy: "Create"},
		DriftSpec:  DriftSpec{DriftPolicy: "Report"}, TypeSpec: TypeSpec{AdditionalManagedTypes: []v1alpha1.TypeInfo{{}}},
		PatchesSpec: PatchesSpec{Patches: []v1alpha1.Patch{{}}, Images: []v1alpha1.Image{{}}},
		Size:        3,
	}
	type Shared struct {
		*TimeoutSpec `json:",inline"`
		Color        string `json:"color"`
	}
	tests := []struct {
		name string
		spec any
		want map[string]any
	}{
		{"all of it", &w.Spec, map[string]any{"size": int64(3)}},
		{"a value", w.Spec, map[string]any{"size": int64(3)}},
		{"a field of the author with the name of one that is left out", struct {
			PlacementSpec `json:",inline"`
			Name          string `json:"name"`
		}{PlacementSpec{Namespace: "a", Name: "b"}, "c"}, map[string]any{"name": "c"}},
		{"in another embedded struct", &struct {
			*Shared `json:",inline"`
			Timeout float64 `json:"seconds"`
		}{&Shared{&TimeoutSpec{Timeout: &configured}, "red"}, 1.5}, map[string]any{"color": "red", "seconds": 1.5}},
		{"a field that is not embedded is the author's", struct {
			Placement PlacementSpec `json:"placement"`
		}{PlacementSpec{Name: "b"}}, map[string]any{"placement": map[string]any{"name": "b"}}},
		{"values of any form", struct {
			Values *apiextensionsv1.JSON `json:"values,omitempty"`
		}{&apiextensionsv1.JSON{Raw: []byte(`{"a":[1,{"b":2.5}]}`)}}, map[string]any{"values": map[string]any{"a": []any{int64(1), map[string]any{"b": 2.5}}}}},
		{"no spec", (*widgetSpec)(nil), nil},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if diff := cmp.Diff(test.want, Parameters(test.spec)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
	if w.Spec.Namespace != "a" || w.Spec.Timeout == nil {
		t.Error("the spec itself was changed")
	}
}

func TestASpecThatIsNoParametersRendersNothing(t *testing.T) {
	for name, spec := range map[string]any{
		"cannot be marshalled": &struct{ F func() }{func() {}}, "is no object": []string{"a"},
		"holds no JSON": &struct{ V *apiextensionsv1.JSON }{&apiextensionsv1.JSON{Raw: []byte("{")}},
	} {
		t.Run(name, func(t *testing.T) {
			if err := guard.Call(func() error { Parameters(spec); return nil }); err == nil || !strings.Contains(err.Error(), "cannot be turned into parameters") {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestDigestOfWhatIsNoJSONIsAnError(t *testing.T) {
	obj := &specless{widget: *newWidget(), spec: types.UnstructurableMap{"f": func() {}}}
	if _, err := digestsOf(obj, nil, "", ""); err == nil {
		t.Error("no error")
	}
}

func TestARevisionIsAnInstallationUntilOneWasApplied(t *testing.T) {
	engine, obj := &fakeEngine{}, newWidget()
	h, _ := testHandler(t, engine)
	var rendered []string
	h.revisions.Renderer.Generator = generatorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		known := manifests.FromContext(ctx)
		if line := fmt.Sprint(known.Revision, !known.Upgrade); !slices.Contains(rendered, line) {
			rendered = append(rendered, line)
		}
		return nil, nil
	})
	for _, step := range []struct {
		changes bool
		err     error
	}{
		{err: errors.New("Job shop/migration: failed")},
		{changes: true, err: errors.New("Job shop/migration: failed")},
		{changes: true}, {}, {changes: true},
	} {
		if step.changes {
			obj.Generation++
			obj.Spec.Size++
		}
		engine.err = step.err
		if _, err := h.applier.createOrUpdate(t.Context(), obj, noCommit); !errors.Is(err, step.err) {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff([]string{"1 true", "2 true", "3 true", "4 false"}, rendered); diff != "" || obj.Status.InstalledRevision != 3 {
		t.Errorf("the installed revision is %d; rendered (-want +got):\n%s", obj.Status.InstalledRevision, diff)
	}
	for _, test := range []struct {
		status revision.Status
		want   bool
	}{
		{revision.Status{Revision: 1, AppliedGeneration: 1, InstalledRevision: 1}, true},
		{revision.Status{Revision: 2, AppliedGeneration: 1, InstalledRevision: 1}, false},
		{revision.Status{Revision: 2}, true},
	} {
		if got := test.status.Installs(); got != test.want {
			t.Errorf("%+v: got %v, want %v", test.status, got, test.want)
		}
	}
}

func TestNothingIsAppliedWhileTheDefinitionIsOutdated(t *testing.T) {
	dropped := errors.New("the API server does not keep status.revision as sent")
	for name, status := range map[string]Status{
		"known":  {Revision: 1},
		"unseen": {AppliedGeneration: 1},
	} {
		engine, obj := &fakeEngine{}, newWidget()
		h, _ := testHandler(t, engine)
		obj.Status.Revision, obj.Status.AppliedGeneration = status.Revision, status.AppliedGeneration
		if name == "known" {
			conclude.SetVerdict(obj, verdict.Verdict{State: v1alpha1.StateError, Ready: metav1.ConditionFalse, Stalled: true, Reason: vocabulary.ReasonCRDOutdated})
		}
		_, err := h.applier.createOrUpdate(t.Context(), obj, func(context.Context) error { return dropped })
		if !errors.Is(err, dropped) || len(engine.applied) > 0 {
			t.Errorf("%s: got %v, and %d calls of the engine", name, err, len(engine.applied))
		}
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"math"
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
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
)

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func testSettings(t testing.TB, options ReconcilerOptions) settings {
	t.Helper()
	s, err := resolveOptions("test.corbel.run", options)
	check(t, err)
	return s
}

func TestDirectives(t *testing.T) {
	defaults := testSettings(t, ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicySsaMerge)})
	plain := resolvedConfig{
		Deployment: revision.Deployment{Namespace: "shop", Name: "main"},
		policies:   defaults.policies,
	}
	tests := []struct {
		name string
		spec widgetSpec
		// annotation is the drift policy on the component.
		annotation string
		want       func(*resolvedConfig)
		err        string
	}{
		{name: "nothing said means the defaults of the reconciler", want: func(*resolvedConfig) {}},
		{name: "placed elsewhere",
			spec: widgetSpec{PlacementSpec: PlacementSpec{Namespace: "other", Name: "renamed"}},
			want: func(d *resolvedConfig) { d.Namespace, d.Name = "other", "renamed" }},
		{name: "policies over those of the reconciler, the rest stays",
			spec: widgetSpec{PolicySpec: PolicySpec{AdoptionPolicy: v1alpha1.AdoptionPolicyNever, DeletePolicy: v1alpha1.DeletePolicyOrphan}},
			want: func(d *resolvedConfig) {
				d.policies.Adoption, d.policies.Delete = v1alpha1.AdoptionPolicyNever, v1alpha1.DeletePolicyOrphan
			}},
		{name: "a drift policy",
			spec: widgetSpec{DriftSpec: DriftSpec{DriftPolicy: v1alpha1.DriftPolicyReport}},
			want: func(d *resolvedConfig) { d.policies.Drift = v1alpha1.DriftPolicyReport }},
		{name: "the annotation counts before it",
			spec:       widgetSpec{DriftSpec: DriftSpec{DriftPolicy: v1alpha1.DriftPolicyReport}},
			annotation: "ignore",
			want:       func(d *resolvedConfig) { d.policies.Drift = v1alpha1.DriftPolicyIgnore }},
		{name: "a drift policy that does not exist", spec: widgetSpec{DriftSpec: DriftSpec{DriftPolicy: "Maybe"}}, annotation: "never",
			err: `DriftPolicy "Maybe": must be one of [Repair Report Ignore]|drift-policy: "never" is not one of repair, report, ignore`},
		{name: "a reapply interval has a floor",
			spec: widgetSpec{ReapplySpec: ReapplySpec{duration("1s")}},
			want: func(d *resolvedConfig) { d.policies.ReapplyInterval = time.Minute }},
		{name: "managed types with patterns",
			spec: widgetSpec{TypeSpec: TypeSpec{[]v1alpha1.TypeInfo{{Group: "*.crossplane.io", Kind: "*"}, {Group: "*", Kind: "Foo"}, {Group: "a.b", Kind: "Bar"}}}},
			want: func(d *resolvedConfig) {
				d.managedTypes = []reconciler.TypeInfo{{Group: "*.crossplane.io", Kind: "*"}, {Group: "*", Kind: "Foo"}, {Group: "a.b", Kind: "Bar"}}
			}},
		{name: "an illegal namespace", spec: widgetSpec{PlacementSpec: PlacementSpec{Namespace: "a.b"}}, err: `deployment namespace "a.b"`},
		{name: "an illegal name", spec: widgetSpec{PlacementSpec: PlacementSpec{Name: "A"}}, err: `deployment name "A"`},
		{name: "a policy that does not exist", spec: widgetSpec{PolicySpec: PolicySpec{UpdatePolicy: "Sometimes"}},
			err: `UpdatePolicy "Sometimes": must be one of [Replace SsaMerge SsaOverride Recreate RecreateOnImmutable]`},
		{name: "patterns that are none, all of them", spec: widgetSpec{TypeSpec: TypeSpec{[]v1alpha1.TypeInfo{{Group: "a.*", Kind: "Foo"}, {Group: "", Kind: "Pod"}, {Group: "*", Kind: "F*"}}}},
			err: `type 1: group "a.*"|type 2: group ""|type 3: kind "F*"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			obj := newWidget()
			obj.Spec = test.spec
			if test.annotation != "" {
				obj.SetAnnotations(map[string]string{"test.corbel.run/drift-policy": test.annotation})
			}
			got, err := resolveConfig(obj, defaults)
			if test.err != "" {
				checkMistakes(t, err, test.err)
				return
			}
			check(t, err)
			want := plain
			test.want(&want)
			if diff := cmp.Diff(want, got, cmp.AllowUnexported(resolvedConfig{})); diff != "" {
				t.Errorf("resolvedConfig (-want +got):\n%s", diff)
			}
		})
	}
}

// checkMistakes looks for all of the texts, which are separated by bars.
func checkMistakes(t *testing.T, err error, texts string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want %q", texts)
	}
	for text := range strings.SplitSeq(texts, "|") {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("error %q does not say %q", err, text)
		}
	}
}

func TestIntervals(t *testing.T) {
	for name, test := range map[string]struct {
		spec widgetSpec
		want verdict.Intervals
	}{
		"the default":                    {widgetSpec{}, verdict.Intervals{Requeue: 10 * time.Minute, Retry: 10 * time.Minute, Timeout: 10 * time.Minute}},
		"zero is no interval of its own": {widgetSpec{RequeueSpec: RequeueSpec{duration("0s")}}, verdict.Intervals{Requeue: 10 * time.Minute, Retry: 10 * time.Minute, Timeout: 10 * time.Minute}},
		"retry and timeout follow the requeue interval": {
			widgetSpec{RequeueSpec: RequeueSpec{duration("5m")}}, verdict.Intervals{Requeue: 5 * time.Minute, Retry: 5 * time.Minute, Timeout: 5 * time.Minute},
		},
		"every interval by itself, none below a second, none negative": {
			widgetSpec{RequeueSpec: RequeueSpec{duration("1ms")}, RetrySpec: RetrySpec{duration("2s")}, TimeoutSpec: TimeoutSpec{duration("-3s")}},
			verdict.Intervals{Requeue: time.Second, Retry: 2 * time.Second, Timeout: time.Second},
		},
	} {
		if got := intervalsOf(withSpec(test.spec)); got != test.want {
			t.Errorf("%s: got %+v, want %+v", name, got, test.want)
		}
	}
}

func TestIntervalsDoNotOverflow(t *testing.T) {
	if got := interval(math.MaxInt64, time.Minute); time.Now().Add(got).Before(time.Now()) || got+got < got {
		t.Errorf("the interval %s overflows", got)
	}
	if got := interval(math.MinInt64, time.Minute); got != time.Minute {
		t.Errorf("a negative interval became %s", got)
	}
}

// wilful has configurations of its own, besides those of its spec.
type wilful struct{ widget }

func (w *wilful) GetRequeueInterval() time.Duration { return time.Hour }

// byValue returns its spec by value.
type byValue struct{ widget }

type valueSpec struct{ TimeoutSpec }

func (s valueSpec) ToUnstructured() map[string]any { return nil }

func (v *byValue) GetSpec() types.Unstructurable {
	return valueSpec{TimeoutSpec{Timeout: duration("3m")}}
}

// specless returns nil in several ways.
type specless struct {
	widget
	spec types.Unstructurable
}

func (s *specless) GetSpec() types.Unstructurable { return s.spec }

// embeddedPointer has a part of its spec by pointer.
type embeddedPointer struct{ widget }

type pointerSpec struct{ *RetrySpec }

func (s *pointerSpec) ToUnstructured() map[string]any { return nil }

func (e *embeddedPointer) GetSpec() types.Unstructurable { return &pointerSpec{} }

func TestConfigurationOf(t *testing.T) {
	withSpec := &wilful{widget: *newWidget()}
	withSpec.Spec.RequeueInterval = duration("1m")
	withSpec.Spec.RetryInterval = duration("2m")

	if own, ok := configurationOf[RequeueConfiguration](withSpec); !ok || own.GetRequeueInterval() != time.Hour {
		t.Error("the component does not come before its spec")
	}
	if own, ok := configurationOf[RetryConfiguration](withSpec); !ok || own.GetRetryInterval() != 2*time.Minute {
		t.Error("the spec is not asked")
	}
	if own, ok := configurationOf[TimeoutConfiguration](&byValue{}); !ok || own.GetTimeout() != 3*time.Minute {
		t.Error("a spec that is returned by value does not count")
	}
	if _, ok := configurationOf[RetryConfiguration](&byValue{}); ok {
		t.Error("a spec by value has a configuration that it does not implement")
	}
	if own, ok := configurationOf[RetryConfiguration](&embeddedPointer{}); !ok || own.GetRetryInterval() != 0 {
		t.Error("a nil part of a spec is not the default")
	}
	var none *widgetSpec
	for name, spec := range map[string]types.Unstructurable{
		"nil": nil, "nil pointer": none, "nil map": types.UnstructurableMap(nil), "map": types.UnstructurableMap{},
	} {
		if _, ok := configurationOf[RequeueConfiguration](&specless{spec: spec}); ok {
			t.Errorf("%s: a spec that is no RequeueConfiguration is one", name)
		}
	}
}

// plainSpec has no method.
type plainSpec struct {
	TimeoutSpec `json:",inline"`
	Size        string             `json:"size"`
	Password    SecretKeyReference `json:"password"`
}

func TestASpecNeedsNoMethod(t *testing.T) {
	spec := &plainSpec{TimeoutSpec: TimeoutSpec{Timeout: duration("3m")}, Size: "large", Password: SecretKeyReference{Name: "mail"}}
	obj := &specless{spec: ParametersOf(spec)}
	if own, ok := configurationOf[TimeoutConfiguration](obj); !ok || own.GetTimeout() != 3*time.Minute {
		t.Error("the configuration of the spec does not count")
	}
	if found, _ := finderFor[*specless]().Find(specOf(obj)); !slices.ContainsFunc(found, func(f references.Found) bool { return f.Path == "spec.password" }) {
		t.Errorf("the references of the spec are %v", found)
	}
	want := map[string]any{"size": "large", "password": map[string]any{"name": "mail"}}
	if diff := cmp.Diff(want, obj.GetSpec().ToUnstructured()); diff != "" {
		t.Errorf("parameters (-want +got):\n%s", diff)
	}
	if _, ok := configurationOf[TimeoutConfiguration](&specless{spec: ParametersOf((*plainSpec)(nil))}); ok {
		t.Error("a nil pointer counts as a spec")
	}
}

func TestReadyMadeSpecsCanBeNil(t *testing.T) {
	var (
		placement     *PlacementSpec
		clientSpec    *ClientSpec
		impersonation *ImpersonationSpec
		suspension    *SuspensionSpec
		requeue       *RequeueSpec
		retry         *RetrySpec
		timeout       *TimeoutSpec
		policy        *PolicySpec
		drift         *DriftSpec
		typ           *TypeSpec
		reapply       *ReapplySpec
		patches       *PatchesSpec
	)
	if placement.GetDeploymentNamespace()+placement.GetDeploymentName()+impersonation.GetImpersonationUser() != "" ||
		clientSpec.GetKubeConfig() != nil || impersonation.GetImpersonationGroups() != nil || suspension.IsSuspended() ||
		requeue.GetRequeueInterval()+retry.GetRetryInterval()+timeout.GetTimeout()+reapply.GetReapplyInterval() != 0 ||
		policy.GetAdoptionPolicy() != "" || policy.GetUpdatePolicy() != "" || policy.GetDeletePolicy() != "" ||
		policy.GetMissingNamespacesPolicy() != "" || drift.GetDriftPolicy() != "" || typ.GetAdditionalManagedTypes() != nil || patches.GetPatches() != nil || patches.GetImages() != nil {
		t.Error("a nil spec says something")
	}
}

func digestsOf(obj Component, found []references.Found, generator, key string) (revision.Digests, error) {
	source := &revision.Source{
		Self: &identity.Operator{Name: "test.corbel.run"}, DigestKey: fixedKey(key).Get,
		References: func(identity.Component) []references.Found { return found },
		Renderer: &rendering.Renderer{
			Generator:  manifests.WithDigest(generatorFunc(nothing), generator),
			Parameters: authorTypeOf[*widget]().parametersOf,
			Patches:    func(obj identity.Component) ([]v1alpha1.Patch, []v1alpha1.Image) { return patchesOf(obj) },
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
		{"what a reference of the package loaded", func(w *widget) { w.Spec.Refs.Password.loaded = map[string][]byte{"": []byte("2")} }, true, true},
		{"that what is referred to is empty", func(w *widget) { w.Spec.Refs.Password.loaded = map[string][]byte{"": {}} }, true, true},
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

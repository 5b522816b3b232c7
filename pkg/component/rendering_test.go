// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/component/internal/verdict"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/reconciler"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

func oneConfigMap(value string) []client.Object {
	return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Data: map[string]string{"value": value}}}
}

func valueOf(objects []client.Object) string {
	value, _, _ := unstructured.NestedString(objects[0].(*unstructured.Unstructured).Object, "data", "value")
	return value
}

// render renders the dependents of a new widget.
func render(ctx context.Context, h *handler) ([]client.Object, error) {
	w := newWidget()
	rendered, err := h.revisions.Renderer.Render(ctx, rendering.Request{Component: w}, &h.remembered(w).rendering)
	return rendered.Objects, err
}

// playback is a generator that renders one value after the other; an empty one is an error.
type playback struct {
	values []string
	calls  int
}

func (p *playback) Generate(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	value := p.values[min(p.calls, len(p.values)-1)]
	p.calls++
	if value == "" {
		return nil, errors.New("broken")
	}
	return oneConfigMap(value), nil
}

// play renders once for each digest and returns the values to apply.
func play(t *testing.T, h *handler, digests ...string) []string {
	t.Helper()
	var values []string
	for _, digest := range digests {
		objects, err := render(manifests.Context{Digest: digest}.In(t.Context()), h)
		check(t, err)
		values = append(values, valueOf(objects))
	}
	return values
}

func TestManifestsThatChangeForNoReasonAreRenderedAgain(t *testing.T) {
	const differ = "Warning|NonDeterministicRendering|Apply|two renderings of the same input are not the same: ConfigMap a differs in data.value"
	tests := []struct {
		name       string
		rendered   []string
		digests    []string
		wantValues []string
		wantCalls  int
		wantEvents []string
	}{
		{name: "always the same", rendered: []string{"a"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "a", "a"}, wantCalls: 3},
		{name: "another digest", rendered: []string{"a", "a", "b"}, digests: []string{"1", "1", "2", "2"}, wantValues: []string{"a", "a", "b", "b"}, wantCalls: 4},
		{name: "always another", rendered: []string{"a", "b", "c", "d", "e", "f"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "b", "b"}, wantCalls: 4, wantEvents: []string{differ}},
		{name: "something looked up elsewhere has changed", rendered: []string{"a", "b", "b"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "b", "b"}, wantCalls: 4},
		{name: "the second time fails", rendered: []string{"a", "b", "", "b"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "b", "b"}, wantCalls: 4},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, log := testHandler(t, &fakeEngine{})
			generator := &playback{values: test.rendered}
			h.revisions.Renderer.Generator = generator
			values := play(t, h, test.digests...)
			if diff := cmp.Diff(test.wantValues, values); diff != "" {
				t.Errorf("applied (-want +got):\n%s", diff)
			}
			if generator.calls != test.wantCalls {
				t.Errorf("%d renderings, want %d", generator.calls, test.wantCalls)
			}
			if diff := cmp.Diff(test.wantEvents, log.lines); diff != "" {
				t.Errorf("events (-want +got):\n%s", diff)
			}
		})
	}
}

func TestAFindingNamesObjectFieldAndTemplateButNoValue(t *testing.T) {
	h, log := testHandler(t, &fakeEngine{})
	generator, err := gotemplate.New(fstest.MapFS{
		"t/secret.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData:\n  password: {{ next }}\n  user: root\n")},
	}, "t", gotemplate.Options{Functions: counting()})
	check(t, err)
	h.revisions.Renderer.Generator = generator
	for range 2 {
		if _, err := render(manifests.Context{Digest: "1"}.In(t.Context()), h); err != nil {
			t.Fatal(err)
		}
	}
	const want = "two renderings of the same input are not the same: Secret shop/db differs in stringData.password (from t/secret.yaml)"
	if diff := cmp.Diff([]string{"Warning|NonDeterministicRendering|Apply|" + want}, log.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	key := client.ObjectKeyFromObject(newWidget())
	if diff := cmp.Diff([]string{want}, h.memory.entryOf(key).rendering.Notices()); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	h.forgetComponent(t.Context(), key)
	if notices := h.memory.entryOf(key).rendering.Notices(); notices != nil {
		t.Errorf("after the end there are still %q", notices)
	}
}

// keeper is a chart that keeps the password that it finds in the cluster.
const keeper = `
{{- $found := lookup "v1" "Secret" "shop" "db" -}}
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop}
data:
  password: {{ if $found }}{{ $found.data.password }}{{ else }}{{ randAlphaNum 20 | b64enc }}{{ end }}
`

// counting is a function with another result for each call, which a generator does not know as random.
func counting() template.FuncMap {
	calls := 0
	return template.FuncMap{"next": func() string { calls++; return fmt.Sprint("number ", calls) }}
}

// fromTemplate returns a handler with a generator of one template and a target that holds the
// objects. It renders into the values of an object.
func fromTemplate(t *testing.T, text string, objects ...client.Object) (*handler, *eventLog, client.Client, func(digest string) *unstructured.Unstructured) {
	t.Helper()
	h, log := testHandler(t, &fakeEngine{})
	generator, err := gotemplate.New(fstest.MapFS{"t/a.yaml": {Data: []byte(text)}}, "t", gotemplate.Options{Functions: counting()})
	check(t, err)
	h.revisions.Renderer.Generator = generator
	target := fake.NewClientBuilder().WithObjects(objects...).Build()
	return h, log, target, func(digest string) *unstructured.Unstructured {
		t.Helper()
		ctx := manifests.Context{Digest: digest, Client: target}.In(t.Context())
		objects, err := render(ctx, h)
		check(t, err)
		return objects[0].(*unstructured.Unstructured)
	}
}

func TestATemplateThatKeepsWhatItFindsIsDeterministic(t *testing.T) {
	h, log, target, render := fromTemplate(t, keeper)
	key := client.ObjectKeyFromObject(newWidget())
	installed := render("1")
	check(t, target.Create(t.Context(), installed.DeepCopy()))
	for range 2 {
		if diff := cmp.Diff(installed.Object["data"], render("1").Object["data"]); diff != "" {
			t.Errorf("what was found is not kept (-want +got):\n%s", diff)
		}
	}
	if notices := h.memory.entryOf(key).rendering.Notices(); log.lines != nil || notices != nil {
		t.Errorf("events %q, notices %q", log.lines, notices)
	}
}

func TestAnObjectThatIsAppliedOnceMayBeRenderedInAnyWay(t *testing.T) {
	h, log, _, render := fromTemplate(t, "apiVersion: v1\nkind: Secret\nmetadata: {name: a, annotations: {"+
		testSettings(t, ReconcilerOptions{}).Name+"/reconcile-policy: once}}\nstringData: {p: '{{ randAlphaNum 20 }}'}\n")
	for range 3 {
		render("1")
	}
	if notices := h.remembered(newWidget()).rendering.Notices(); log.lines != nil || notices != nil {
		t.Errorf("events %q, notices %q", log.lines, notices)
	}
}

func TestAnotherAnswerOfTheClusterIsApplied(t *testing.T) {
	const template = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {color: '{{ (lookup "v1" "ConfigMap" "shop" "asked").data.color }}'%s}
`
	tests := []struct {
		name, extra string
		wantHeld    bool
	}{
		{name: "a deterministic generator"},
		{name: "one that also looks up what never exists", extra: `, more: '{{ if lookup "v1" "ConfigMap" "shop" "never" }}yes{{ end }}'`},
		{name: "one that changes by itself", extra: ", random: '{{ next }}'", wantHeld: true},
		{name: "one that changes by itself until something exists", extra: `, random: '{{ if not (lookup "v1" "ConfigMap" "shop" "never") }}{{ next }}{{ end }}'`, wantHeld: true},
		{name: "a random one", extra: ", random: '{{ randAlphaNum 20 }}'"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			asked := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "asked"}, Data: map[string]string{"color": "white"}}
			_, _, target, render := fromTemplate(t, fmt.Sprintf(template, test.extra), asked)
			render("1")
			var applied []string
			for _, color := range []string{"red", "green", "blue"} {
				asked.Data["color"] = color
				check(t, target.Update(t.Context(), asked))
				got, _, _ := unstructured.NestedString(render("1").Object, "data", "color")
				applied = append(applied, got)
			}
			want := []string{"red", "green", "blue"}
			if test.wantHeld {
				want = []string{"red", "red", "red"}
			}
			if diff := cmp.Diff(want, applied); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestOtherCapabilitiesOfTheTargetAreApplied(t *testing.T) {
	version, recorder := "", wire.NewRecorder()
	recorder.Answer = func(wire.Sent) (int, any) { // discovery is answered already
		return http.StatusOK, map[string]any{"gitVersion": version}
	}
	h, _ := testHandler(t, &fakeEngine{})
	h.revisions.Renderer.Generator = manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
		target, _ := renders.Target(ctx)
		served, err := target.Types().Served(ctx)
		return oneConfigMap(served.Version), err
	})
	for _, want := range []string{"v1.31.0", "v1.32.0", "v1.33.0", "v1.34.0"} {
		version = want
		// A target remembers the answer for a while.
		target, err := cluster.New(recorder.Config(), cluster.Options{})
		check(t, err)
		objects, err := render(renders.WithTarget(manifests.Context{Digest: "1"}.In(t.Context()), target), h)
		check(t, err)
		if got := valueOf(objects); got != want {
			t.Errorf("applied %s, want %s", got, want)
		}
	}
}

func TestTheStatusSaysWhatASlowRenderingWorksOn(t *testing.T) {
	for name, tc := range map[string]struct {
		state    v1alpha1.State
		observed int64
		counted  bool // the revision
		refused  error
		reported bool
	}{
		"a new component":          {v1alpha1.StatePending, 0, false, nil, true},
		"a new generation":         {v1alpha1.StateReady, 1, false, nil, true},
		"a new revision":           {v1alpha1.StateReady, 2, false, nil, true},
		"a generation that waits":  {v1alpha1.StateProcessing, 2, false, nil, true},
		"a revision that is ready": {v1alpha1.StateReady, 2, true, nil, false},
		"a generation that failed": {v1alpha1.StateError, 2, false, nil, false},
		"a refused write":          {v1alpha1.StatePending, 0, false, errors.New("conflict"), true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				h, _ := testHandler(t, &fakeEngine{})
				generator := manifests.GeneratorFunc(func(ctx context.Context, _, _ string, _ types.Unstructurable) ([]client.Object, error) {
					renders.NoteProgress(ctx, "template web/a.yaml")
					time.Sleep(h.code.slowAfter + time.Second/2)
					return nil, ctx.Err()
				})
				h.revisions = newSource(h.steps, newRenderer(generator, h.steps))
				obj := newWidget()
				obj.Generation = 2
				obj.Status.State, obj.Status.ObservedGeneration = tc.state, tc.observed
				if tc.counted {
					digests, err := h.revisions.Digests(t.Context(), obj)
					check(t, err)
					revision.Of(obj).StartProcessing(obj.Generation, digests, h.now())
				}
				var said []string
				commit := func(context.Context) error {
					if _, _, message := obj.GetStatus().GetState(); strings.Contains(message, "rendered for") {
						said = append(said, message)
						return tc.refused
					}
					return nil
				}
				if _, err := h.applier.createOrUpdate(t.Context(), obj, commit); !errors.Is(err, tc.refused) {
					t.Errorf("got the error %v", err)
				}
				var want []string
				if tc.reported {
					want = []string{"the manifests have been rendered for 5s: template web/a.yaml"}
				}
				if diff := cmp.Diff(want, said); diff != "" {
					t.Errorf("what the status says (-want +got):\n%s", diff)
				}
			})
		})
	}
}

// BenchmarkRender renders 1,000 objects of an input that was not rendered before, so that
// they are rendered twice and compared.
func BenchmarkRender(b *testing.B) {
	h, _ := testHandler(b, &fakeEngine{})
	h.revisions.Renderer.Generator = manifests.GeneratorFunc(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		objects := make([]client.Object, 1000)
		for i := range objects {
			objects[i] = &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": fmt.Sprint("a", i)},
				"data": map[string]any{"key": "value"},
			}}
		}
		return objects, nil
	})
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := render(manifests.Context{Digest: fmt.Sprint(i)}.In(b.Context()), h); err != nil {
			b.Fatal(err)
		}
	}
}

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

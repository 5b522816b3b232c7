// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/component/internal/rendering"
	"github.com/corbel-run/corbel/pkg/component/internal/revision"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
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

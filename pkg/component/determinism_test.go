// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

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
	return rendered(value), nil
}

// play renders once for each digest and returns the values to apply.
func play(t *testing.T, h *handler[*widget], digests ...string) []string {
	t.Helper()
	var values []string
	for _, digest := range digests {
		objects, err := h.render(manifests.WithComponentDigest(t.Context(), digest), newWidget(), directives{})
		if err != nil {
			t.Fatal(err)
		}
		values = append(values, objects[0].(*corev1.ConfigMap).Data["value"])
	}
	return values
}

func TestManifestsAreRenderedTwiceOncePerDigest(t *testing.T) {
	const differ = "Warning|NonDeterministicRendering|Apply|two renderings of the same input are not the same: ConfigMap a differs in data.value"
	tests := []struct {
		name       string
		rendered   []string
		digests    []string
		once       bool
		wantValues []string
		wantCalls  int
		wantEvents []string
	}{
		{name: "always the same", rendered: []string{"a"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "a", "a"}, wantCalls: 4},
		{name: "again for another digest", rendered: []string{"a"}, digests: []string{"1", "1", "2", "2"}, wantValues: []string{"a", "a", "a", "a"}, wantCalls: 6},
		{name: "always another", rendered: []string{"a", "b", "c", "d", "e", "f"}, digests: []string{"1", "1", "1"}, wantValues: []string{"a", "d", "d"}, wantCalls: 5, wantEvents: []string{differ}},
		{name: "something looked up has just changed", rendered: []string{"a", "b", "b"}, digests: []string{"1", "1"}, wantValues: []string{"a", "b"}, wantCalls: 4},
		{name: "the second time fails", rendered: []string{"a", "", "a"}, digests: []string{"1", "1"}, wantValues: []string{"a", "a"}, wantCalls: 3},
		{name: "the third time fails", rendered: []string{"a", "b", "", "a"}, digests: []string{"1", "1"}, wantValues: []string{"a", "a"}, wantCalls: 4},
		{name: "switched off", once: true, rendered: []string{"a", "b", "c", "d"}, digests: []string{"1", "1"}, wantValues: []string{"a", "b"}, wantCalls: 2},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, log := testHandler(t, &fakeEngine{})
			h.settings = testSettings(t, ReconcilerOptions{SkipDeterminismCheck: test.once})
			generator := &playback{values: test.rendered}
			h.generator = generator
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
		"t/secret.yaml": {Data: []byte("apiVersion: v1\nkind: Secret\nmetadata: {name: db, namespace: shop}\nstringData:\n  password: {{ randAlphaNum 20 }}\n  user: root\n")},
	}, "t", gotemplate.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h.generator = generator
	if _, err := h.render(manifests.WithComponentDigest(t.Context(), "1"), newWidget(), directives{}); err != nil {
		t.Fatal(err)
	}
	const want = "two renderings of the same input are not the same: Secret shop/db differs in stringData.password (from t/secret.yaml)"
	if diff := cmp.Diff([]string{"Warning|NonDeterministicRendering|Apply|" + want}, log.lines); diff != "" {
		t.Errorf("events (-want +got):\n%s", diff)
	}
	key := client.ObjectKeyFromObject(newWidget())
	if diff := cmp.Diff([]string{want}, h.renders.notices(key)); diff != "" {
		t.Errorf("notices (-want +got):\n%s", diff)
	}
	h.Finished(t.Context(), key)
	if notices := h.renders.notices(key); notices != nil {
		t.Errorf("after the end there are still %q", notices)
	}
}

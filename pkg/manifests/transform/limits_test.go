// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

// things returns objects of a type that Kubernetes does not know.
func things(count int) []client.Object {
	objects := make([]client.Object, count)
	for i := range objects {
		objects[i] = &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "example.com/v1", "kind": "Thing", "metadata": map[string]any{"name": fmt.Sprint("t", i)},
			"spec": map[string]any{"text": "${A}"},
		}}
	}
	return objects
}

// Each of these patches fits into a component of some kilobytes, and becomes
// gigabytes where it is encoded.
func TestAShortPatchDoesNotBecomeGigabytes(t *testing.T) {
	long, thing := strings.Repeat("x", 50_000), &v1alpha1.PatchTarget{Kind: "Thing"}
	aliases := strings.Repeat("*a, ", 9_999)
	for name, test := range map[string]struct {
		patches []v1alpha1.Patch
		objects int
		want    string
	}{
		"operations with aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "- {op: add, path: /spec/a, value: &a " + long + "}\n- {op: add, path: /spec/b, value: [" + aliases + "]}"}},
			want:    "the aliases of the document expand to more than 16777216 bytes",
		},
		"a merge with aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "spec: {a: &a " + long + ", b: [" + aliases + "]}"}},
			want:    "the aliases of the document expand to more than 16777216 bytes",
		},
		"a merge with a few aliases": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: "spec: {a: &a " + long + ", b: [" + strings.Repeat("*a, ", 100) + "]}"}},
			want:    "patch 1 of 1: line 1: it is larger than 3145728 bytes once its aliases are expanded",
		},
		"many copies": {
			patches: repeated(v1alpha1.Patch{Target: thing, Patch: "- {op: copy, from: /spec, path: /spec/c}\n- {op: add, path: /spec/a, value: " + long + "}\n- {op: copy, from: /spec, path: /spec/d}"}, 64),
			want:    "patch 5 of 64: Thing t0: operation 3 of 3: copy /spec/d: the operations copy more than 4194304 bytes",
		},
		"many texts": {
			patches: texts(6),
			want:    "patch 4 of 6: Thing t0: it becomes larger than 3145728 bytes",
		},
		"nesting by copies": {
			patches: []v1alpha1.Patch{{Target: thing, Patch: deepening(30)}},
			want:    "the operations copy more than 4194304 bytes",
		},
		"a merge into all objects": {
			patches: texts(1), objects: 400,
			want: "the objects grow by more than 268435456 bytes",
		},
	} {
		t.Run(name, func(t *testing.T) {
			transformer, err := transform.Patches(test.patches, nil)
			if err == nil {
				_, err = manifests.TransformObjects(t.Context(), transformer, "ns", "app", things(max(1, test.objects)))
			}
			if err == nil || !strings.Contains(err.Error(), test.want) || len(err.Error()) > 4096 {
				t.Errorf("got the error %.500v, want %q", err, test.want)
			}
		})
	}
}

func repeated(patch v1alpha1.Patch, count int) []v1alpha1.Patch {
	patches := make([]v1alpha1.Patch, count)
	for i := range patches {
		patches[i] = patch
	}
	return patches
}

// texts returns patches that each add a text of almost a megabyte.
func texts(count int) []v1alpha1.Patch {
	patches := make([]v1alpha1.Patch, count)
	for i := range patches {
		patches[i] = v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: fmt.Sprintf("spec: {a%d: %s}", i, strings.Repeat("x", 1_000_000))}
	}
	return patches
}

// deepening copies a value into its own depths again and again.
func deepening(count int) string {
	text, path := "- {op: add, path: /spec/a, value: {}}\n", "/spec/a"
	for range count {
		text += "- {op: copy, from: /spec/a, path: " + path + "/a}\n"
		path += "/a"
	}
	for range 5 {
		text += "- {op: copy, from: /spec/a, path: " + path + "/a}\n"
		path += strings.Repeat("/a", strings.Count(path, "/")-1)
	}
	return text
}

func TestPatchesEndWhenTheContextEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	patches, err := transform.Patches([]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{}, Patch: "spec: {a: b}"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	expression, err := transform.CEL(`{"a": "b"}`, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, transformer := range map[string]manifests.ObjectTransformer{"patches": patches, "an expression": expression} {
		if _, err := manifests.TransformObjects(ctx, transformer, "ns", "app", things(1)); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: got the error %v", name, err)
		}
	}
}

func TestSubstitutedValuesAreLimited(t *testing.T) {
	substitute, err := transform.Substitute(map[string]string{"A": strings.Repeat("x", 1<<20)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	objects := things(1)
	objects[0].(*unstructured.Unstructured).Object["spec"] = strings.Repeat("${A}", 100_000)
	_, err = manifests.TransformObjects(t.Context(), substitute, "ns", "app", objects)
	if err == nil || !strings.Contains(err.Error(), "Thing t0: the values make it larger than 3145728 bytes") {
		t.Errorf("got the error %v", err)
	}
}

func TestTheResultOfAnExpressionIsLimited(t *testing.T) {
	values := types.UnstructurableMap{"text": strings.Repeat("x", 50_000), "many": make([]any, 5_000)}
	for _, text := range []string{
		`{"a": self.many.map(x, self.text)}`,
		`[{"op": "add", "path": "/a", "value": self.many.map(x, self.text)}]`,
	} {
		expression, err := transform.CEL(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := expression.TransformParameters("ns", "app", values); err == nil || !strings.Contains(err.Error(), "it is larger than 3145728 bytes") {
			t.Errorf("%s: got the error %v", text, err)
		}
	}
}

func TestLongNamesOfImagesAreRefused(t *testing.T) {
	_, err := transform.Patches(nil, []v1alpha1.Image{{Name: "a", NewName: strings.Repeat("x", 2000)}})
	if err == nil || !strings.Contains(err.Error(), "image 1 of 1: it is longer than 1024 bytes") {
		t.Errorf("got the error %v", err)
	}
}

// The memory that is allocated shows the cost, and is the same on a busy machine.
func TestPatchesOfAnObjectCostNoMoreThanTheirNumber(t *testing.T) {
	value := strings.Repeat("x", 4000)
	for name, patch := range map[string]string{
		"operations": `[{"op": "add", "path": "/spec/k%d", "value": "` + value + `"}]`,
		"merge":      "spec: {k%d: " + value + "}",
	} {
		cost := func(count int) uint64 {
			var patches []v1alpha1.Patch
			for i := range count {
				patches = append(patches, v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: fmt.Sprintf(patch, i)})
			}
			transformer, err := transform.Patches(patches, nil)
			if err != nil {
				t.Fatal(err)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			if _, err := manifests.TransformObjects(t.Context(), transformer, "ns", "app", things(1)); err != nil {
				t.Fatal(err)
			}
			runtime.ReadMemStats(&after)
			return after.TotalAlloc - before.TotalAlloc
		}
		if few, many := cost(50), cost(400); many > 16*few {
			t.Errorf("%s: 50 patches allocate %d bytes, and 400 patches %d", name, few, many)
		}
	}
}

func TestPatchesSayWhatTheyWorkOn(t *testing.T) {
	transformer, err := transform.Patches(repeated(v1alpha1.Patch{Target: &v1alpha1.PatchTarget{Kind: "Thing"}, Patch: "spec: {a: b}"}, 2), nil)
	if err != nil {
		t.Fatal(err)
	}
	ctx, at := renders.WithProgress(t.Context())
	if _, err := manifests.TransformObjects(ctx, transformer, "ns", "app", things(3)); err != nil {
		t.Fatal(err)
	}
	if at() != "patch 2 of 2, Thing t2" {
		t.Errorf("at %q", at())
	}
}

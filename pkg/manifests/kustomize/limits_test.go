// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

func TestWhatWouldTakeTooMuchIsRefused(t *testing.T) {
	bomb := "a0: &a0 [x]\n"
	for i := range 30 {
		bomb += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	wide := map[string]string{}
	for i := range 20 {
		wide[fmt.Sprintf("k%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../k%d, ./x]", i+1)
		wide[fmt.Sprintf("k%d/x/kustomization.yaml", i)] = fmt.Sprintf("resources: [../../k%d]\nnamePrefix: x-", i+1)
	}
	wide["k20/kustomization.yaml"], wide["k20/a.yaml"] = "resources: [a.yaml]", configMap("a")
	deep := map[string]string{}
	for i := range 65 {
		deep[fmt.Sprintf("k%d/kustomization.yaml", i)] = fmt.Sprintf("resources: [../k%d]", i+1)
	}
	copies := ""
	for i := range 40 {
		copies += fmt.Sprintf("- {op: copy, from: /data, path: /data/c%d}\n", i)
	}
	resource := configMap("a") + "data: {k: " + strings.Repeat("x", 10_000) + "}\n"
	const copied = "Unable to complete the copy"
	tests := []struct {
		name, root string
		files      map[string]string
		limits     kustomize.Limits
		want       string
	}{
		{"aliases", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": configMap("a") + bomb}, kustomize.Limits{}, "a.yaml: its aliases expand to more than 1000000 values"},
		{"aliases in a patch", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches:\n- patch: |-\n    " + strings.ReplaceAll(bomb, "\n", "\n    "), "a.yaml": configMap("a")},
			kustomize.Limits{}, "patches[0].patch: its aliases expand"},
		{"nesting", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": "x: " + strings.Repeat("[", 1000) + strings.Repeat("]", 1000)}, kustomize.Limits{}, "a.yaml: it is nested deeper than 500 levels"},
		{"deep kustomizations", "k0", deep, kustomize.Limits{}, "folder k64: kustomizations refer to each other more than 64 levels deep"},
		{"many kustomizations", "k0", wide, kustomize.Limits{}, "kustomizations are referred to more than 1000 times"},
		{"a circle", "a", map[string]string{"a/kustomization.yaml": "resources: [../b]", "b/kustomization.yaml": "resources: [../a]"}, kustomize.Limits{}, "cycle detected: candidate root '/a' contains visited root '/a'"},
		{"output", ".", map[string]string{"a.yaml": configMap("a") + "data: {x: " + strings.Repeat("x", 1000) + "}"}, kustomize.Limits{OutputBytes: 1000}, "it gives more than 1000 bytes"},
		{"a large file", ".", map[string]string{"a.yaml": strings.Repeat("#", 1001)}, kustomize.Limits{FileBytes: 1000}, "a.yaml: it is larger than 1000 bytes"},
		{"copies in a patch", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]", "a.yaml": resource, "p.yaml": copies}, kustomize.Limits{}, copied},
		{"copies in an old patch", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatchesJson6902: [{path: p.yaml, target: {version: v1, kind: ConfigMap, name: a}}]", "a.yaml": resource, "p.yaml": copies}, kustomize.Limits{}, copied},
		{"copies in a transformer", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": resource, "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\ntarget: {kind: ConfigMap}", "p.yaml": copies}, kustomize.Limits{}, copied},
		{"aliases in a transformer", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": resource, "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\n", "p.yaml": bomb}, kustomize.Limits{}, "p.yaml: its aliases expand to more than 1000000 values"},
		{"aliases in a file with a zero byte behind its name", ".", map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": resource, "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: \"p.yaml\\0\"\n", "p.yaml": bomb}, kustomize.Limits{}, "t.yaml: document 1.path"},
		{"large files", ".", map[string]string{"a.yaml": strings.Repeat("#", 600), "b.yaml": strings.Repeat("#", 600)}, kustomize.Limits{TotalBytes: 1000}, "too large together"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := generate(t.Context(), test.files, test.root, kustomize.Options{Limits: test.limits}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want %q", err, test.want)
			}
		})
	}
}

func TestMistakesAreReportedWithTheirPlace(t *testing.T) {
	for want, files := range map[string]map[string]string{
		"kustomization.yaml: resources[0]: \"a.yaml\": file does not exist":  {"kustomization.yaml": "resources: [a.yaml]"},
		"it holds no kustomization and no manifests":                         {"readme.md": "x"},
		"kustomization.yaml: secretGenerator[0].literals[0]: want key=value": {"kustomization.yaml": "secretGenerator: [{name: a, literals: [hunter2]}]"},
		"kustomization.yaml: secretGenerator[0].literals[1]: want key=value": {"kustomization.yaml": "secretGenerator: [{name: a, literals: [a=hunter2, '']}]"},
		"configMapGenerator[0].literals[0]: want key=value":                  {"kustomization.yaml": "configMapGenerator: [{name: a, literals: [=hunter2]}]"},
		"pattern \"[\"": {".corbelignore": "[\n", "a.yaml": configMap("a")},
	} {
		_, err := generate(t.Context(), files, ".", kustomize.Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got the error %v, want %q", err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error holds a secret: %v", err)
		}
	}
}

func TestADecryptorThatHangsIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	started := time.Now()
	g, err := kustomize.New(folder(map[string]string{"a.yaml": configMap("a")}), ".", kustomize.Options{
		Timeout:   50 * time.Millisecond,
		Decryptor: manifests.DecryptorFunc(func(data []byte, _ string) ([]byte, error) { <-release; return data, nil }),
	})
	late, ok := errors.AsType[*timeout.Error](err)
	if !ok || time.Since(started) > time.Minute {
		t.Fatalf("got the error %v after %s", err, time.Since(started))
	}
	if _, again := manifests.Generate(t.Context(), g, "ns", "app", nil); !errors.Is(again, late) {
		t.Errorf("got the error %v", again)
	}
}

func TestWhatADecryptorReturnsIsLimited(t *testing.T) {
	_, err := kustomize.New(folder(map[string]string{"a.yaml": configMap("a")}), ".", kustomize.Options{
		Limits:    kustomize.Limits{TotalBytes: 1000},
		Decryptor: manifests.DecryptorFunc(func([]byte, string) ([]byte, error) { return make([]byte, 2000), nil }),
	})
	if err == nil || !strings.Contains(err.Error(), "a.yaml: decrypt it: the files have more than 1000 bytes together") {
		t.Errorf("got the error %v", err)
	}
}

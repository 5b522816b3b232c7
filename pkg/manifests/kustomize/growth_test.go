// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

// Each of these builds would take all memory, and nothing can end a build.
func TestWhatWouldGrowWithoutLimitIsNotBuilt(t *testing.T) {
	resource := configMap("a") + "data: {k: " + strings.Repeat("x", 10_000) + "}\n"
	copies := func(count int) string {
		text := ""
		for i := range count {
			text += fmt.Sprintf("- {op: copy, from: /data, path: /data/c%d}\n", i)
		}
		return text
	}
	patches := func(count int, target string) string {
		text := "resources: [a.yaml]\npatches:\n"
		for i := range count {
			text += fmt.Sprintf("- {target: {kind: ConfigMap%s}, patch: '- {op: copy, from: /data, path: /data/c%d}'}\n", target, i)
		}
		return text
	}
	replacements := func(count int) string {
		text := ""
		for i := range count {
			text += fmt.Sprintf("- {source: {kind: ConfigMap, name: a, fieldPath: data}, targets: [{select: {kind: ConfigMap}, options: {create: true}, fieldPaths: [data.c%d]}]}\n", i)
		}
		return text
	}
	joins := func(options string) string {
		return strings.Repeat("- {source: {kind: ConfigMap, name: a, fieldPath: data.k"+options+"}, targets: [{select: {kind: ConfigMap}, options: {delimiter: ',', index: 100000000}, fieldPaths: [data.k]}]}\n", 40)
	}
	many := ""
	for i := range 2000 {
		many += configMap(fmt.Sprint("m", i)) + "---\n"
	}
	bomb := "a: &a " + strings.Repeat("x", 50_000) + "\nb: [" + strings.Repeat("*a, ", 9_999) + "]\n"
	plugged := func(patch string) map[string]string {
		text := ""
		for i := range 4 {
			text += fmt.Sprintf("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t%d}\ntarget: {kind: ConfigMap}\n%s\n---\n", i, patch)
		}
		return map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": many, "t.yaml": text}
	}
	aliased := "apiVersion: v1\nkind: List\nitems:\n"
	for i := range 4 {
		aliased += fmt.Sprintf("- {apiVersion: builtin, kind: PatchTransformer, metadata: {name: t%d}, target: {kind: ConfigMap}, patch: ", i)
		if i == 0 {
			aliased += "&a '- {op: copy, from: /data, path: /data/c}'}\n"
		} else {
			aliased += "*a }\n"
		}
	}
	const replaced, added, copied = "its replacements copy more than 8 times", "may add more than 1073741824 bytes", "Unable to complete the copy"
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"copies in a patch":                             {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]", "p.yaml": copies(40)}, copied},
		"copies in an old patch":                        {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatchesJson6902: [{path: p.yaml, target: {version: v1, kind: ConfigMap, name: a}}]", "p.yaml": copies(40)}, copied},
		"copies in a transformer":                       {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\ntarget: {kind: ConfigMap}", "p.yaml": copies(40)}, copied},
		"copies in many patches":                        {map[string]string{"kustomization.yaml": patches(40, ""), "a.yaml": many + resource}, added},
		"copies by an escaped name":                     {map[string]string{"kustomization.yaml": strings.ReplaceAll(patches(40, ""), "op: copy", `"op": "\u0063opy"`), "a.yaml": many + resource}, added},
		"aliases in a patch":                            {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]", "a.yaml": many, "p.yaml": configMap("any") + "a: &a " + strings.Repeat("x", 10_000) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n"}, added},
		"copies for one name":                           {map[string]string{"kustomization.yaml": patches(5000, ", name: a")}, added},
		"a patch for many objects":                      {map[string]string{"kustomization.yaml": "resources: [a.yaml]\npatches: [{path: p.yaml, target: {kind: ConfigMap}}]", "a.yaml": many, "p.yaml": "data: {k: " + strings.Repeat("x", 1_000_000) + "}"}, added},
		"an annotation for many":                        {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ncommonAnnotations: {a: " + strings.Repeat("x", 1_000_000) + "}", "a.yaml": many}, added},
		"replacements":                                  {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + replacements(40)}, replaced},
		"replacements that join a text with itself":     {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + joins("")}, replaced},
		"replacements that join a cut text with itself": {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nreplacements:\n" + joins(", options: {delimiter: '|', index: 0}")}, replaced},
		"replacements in a file":                        {map[string]string{"kustomization.yaml": "resources: [a.yaml]\nreplacements: [{path: r.yaml}]", "r.yaml": replacements(40)}, replaced},
		"replacements of a plugin":                      {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: ReplacementTransformer\nmetadata: {name: t}\nreplacements:\n" + replacements(40)}, replaced},
		"copies in plugins as binary texts":             {plugged("patch: !!binary " + base64.StdEncoding.EncodeToString([]byte(copies(1)))), added},
		"copies in plugins as texts of a tag":           {plugged("patch: !x '[{\"op\": \"copy\", \"from\": \"/data\", \"path\": \"/data/c\"}]'"), added},
		"copies in plugins by aliases":                  {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": many, "t.yaml": aliased}, added},
		"aliases":                                       {map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]", "b.yaml": configMap("b") + bomb}, "b.yaml: its aliases expand to more than 67108864 bytes"},
		"aliases in a transformer":                      {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml": "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t}\npath: p.yaml\n", "p.yaml": bomb}, "p.yaml: its aliases expand to more than 67108864 bytes"},
		"copies in a plugin by an escaped name":         {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "a.yaml": many + resource, "t.yaml": plugins(0, 40, `[{"op": "\u0063opy", "from": "/data", "path": "/data/c%d"}]`)}, added},
		"aliases in the text of a plugin":               {map[string]string{"kustomization.yaml": "resources: [a.yaml]\ntransformers: [t.yaml]", "t.yaml": plugins(0, 1, strings.ReplaceAll(bomb, "\n", "\n\n")+"c: %d")}, "its aliases expand to more than 67108864 bytes"},
		"a file that is used 60 times":                  {map[string]string{"kustomization.yaml": "configMapGenerator:" + generators(60), "big": strings.Repeat("x", 5_000_000)}, "the files that it refers to have more than 268435456 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			if test.files["a.yaml"] == "" {
				test.files["a.yaml"] = resource
			}
			_, err := generate(t.Context(), test.files, ".", kustomize.Options{}, nil)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %.500v, want %q", err, test.want)
			}
		})
	}
}

// plugins are transformers with a patch each, in single quotes.
func plugins(first, count int, patch string) string {
	text := ""
	for i := first; i < first+count; i++ {
		text += fmt.Sprintf("apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: t%d}\ntarget: {kind: ConfigMap}\npatch: '"+patch+"'\n---\n", i, i)
	}
	return text
}

func generators(count int) string {
	text := ""
	for i := range count {
		text += fmt.Sprintf("\n- {name: g%d, files: [big]}", i)
	}
	return text
}

func TestOrdinaryCopiesAndReplacementsAreBuilt(t *testing.T) {
	objects, err := generate(t.Context(), map[string]string{
		"a.yaml": configMap("a") + "data: {k: x, l: z}\n" + "---\n" + configMap("b") + "data: {k: y}\n",
		"kustomization.yaml": "resources: [a.yaml]\npatches: [{target: {kind: ConfigMap}, patch: '- {op: copy, from: /data/k, path: /data/c}'}]\n" +
			"replacements: [{source: {kind: ConfigMap, name: a, fieldPath: data}, targets: [{select: {name: b}, options: {create: true}, fieldPaths: [other]}]}]",
	}, ".", kustomize.Options{}, nil)
	if err != nil || len(objects) != 2 {
		t.Fatalf("got %v, %v", objects, err)
	}
}

// The word alone is no copy.
func TestPatchesThatNameACopyAreBuilt(t *testing.T) {
	files := map[string]string{"a.yaml": "", "kustomization.yaml": "resources: [a.yaml]\npatches:\n"}
	for i := range 6 {
		files["a.yaml"] += configMap(fmt.Sprint("m", i)) + "---\n"
	}
	for range 30 {
		files["kustomization.yaml"] += "- {target: {kind: ConfigMap}, patch: '[{\"op\": \"add\", \"path\": \"/data\", \"value\": {\"command\": \"copy\"}}]'}\n" +
			"- {target: {kind: ConfigMap}, patch: '{kind: ConfigMap, metadata: {name: any, labels: {copy: \"yes\"}}}'}\n"
	}
	if objects, err := generate(t.Context(), files, ".", kustomize.Options{}, nil); err != nil || len(objects) != 6 {
		t.Fatalf("got %d objects, %.300v", len(objects), err)
	}
	files["kustomization.yaml"] = "resources: [a.yaml]\ntransformers:\n"
	for i := range 40 {
		name := fmt.Sprintf("t%d.yaml", i)
		files["kustomization.yaml"] += "- " + name + "\n"
		files[name] = plugins(i, 1, `[{"op": "add", "path": "/data", "value": {"command": "copy %d"}}]`)
	}
	if objects, err := generate(t.Context(), files, ".", kustomize.Options{}, nil); err != nil || len(objects) != 6 {
		t.Fatalf("with plugins: got %d objects, %.300v", len(objects), err)
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
	late, ok := errors.AsType[*manifests.RenderTimeoutError](err)
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestAFolderWithoutAKustomizationGetsOne(t *testing.T) {
	objects, err := generate(t.Context(), map[string]string{
		"root/b.yaml": configMap("b"), "root/sub/a.yml": configMap("a"), "root/readme.md": "x", "root/.hidden.yaml": configMap("hidden"),
		"root/own/kustomization.yaml": "resources: [x.yaml]\nnamePrefix: own-", "root/own/x.yaml": configMap("x"), "root/own/deep/y.yaml": configMap("y"),
		"root/empty.yaml": "---\n# nothing\n", "root/tests/t.yaml": configMap("t"), "root/skip.yaml": configMap("skip"), "root/kept-skip.yaml": configMap("kept"),
		"elsewhere.yaml": configMap("elsewhere"),
		".corbelignore":  "# comment\n*skip.yaml\n!kept-*\n/root/**/tests/\n",
	}, "root", kustomize.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("a b kept own-x", names(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestTemplatesAreRenderedBeforeTheBuild(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\nnamePrefix: '<< .Name >>-'\n<< if .Values.labels >>labels: [{pairs: << toJson .Values.labels >>}]<< end >>\n",
		"a.yaml.tmpl":        configMap("a") + "data:\n  plain: '{{ .not }} a template'\n  file: << readFile \"data/x.txt\" | quote >>\n  exists: '<< existsFile \"y\" >>'\n  list: << listFiles \"data/*\" | toJson | quote >>\n",
		"data/x.txt":         "<< not a template >>",
		"_helper.tmpl":       "<< define \"x\" >>x<< end >>",
	}
	options := kustomize.Options{Templates: &kustomize.Templates{
		Suffix: ".tmpl", TrimSuffix: true, Options: gotemplate.Options{LeftDelimiter: "<<", RightDelimiter: ">>"},
	}}
	// The kustomization is no template, as it has another suffix.
	if _, err := generate(t.Context(), files, ".", options, nil); err == nil {
		t.Error("got no error")
	}
	files["kustomization.yaml.tmpl"] = files["kustomization.yaml"]
	delete(files, "kustomization.yaml")
	objects, err := generate(t.Context(), files, ".", options, map[string]any{"labels": map[string]any{"team": "x"}})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{"plain": "{{ .not }} a template", "file": "<< not a template >>", "exists": "false", "list": "[\"data/x.txt\"]"}
	if diff := cmp.Diff(want, contentOf(objects[0])["data"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if objects[0].GetName() != "app-a" || objects[0].GetLabels()["team"] != "x" {
		t.Errorf("got %s, labels %v", objects[0].GetName(), objects[0].GetLabels())
	}
}

func contentOf(object client.Object) map[string]any {
	return object.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
}

func TestTemplatesCannotMakeAReferenceThatIsNotChecked(t *testing.T) {
	_, err := generate(t.Context(), map[string]string{"kustomization.yaml": "resources: ['{{ .Values.source }}']"}, ".",
		kustomize.Options{Templates: &kustomize.Templates{}}, map[string]any{"source": "https://example.org/x.yaml"})
	if err == nil || !strings.Contains(err.Error(), "it leads to another machine") {
		t.Errorf("got the error %v", err)
	}
}

func TestIgnoredFilesAreNoTemplates(t *testing.T) {
	objects, err := generate(t.Context(), map[string]string{
		"ignored.txt": "dashboards/\n", "kustomization.yaml": "configMapGenerator: [{name: a, files: [dashboards/d.json], options: {disableNameSuffixHash: true}}]",
		"dashboards/d.json": "{{ nonsense }}",
	}, ".", kustomize.Options{IgnoreFile: "ignored.txt", Templates: &kustomize.Templates{}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(map[string]any{"d.json": "{{ nonsense }}"}, contentOf(objects[0])["data"]); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// A build that brings a schema merges lists by name; one that does not, and runs
// at the same time or later, must not.
func TestBuildsDoNotDisturbEachOther(t *testing.T) {
	thing := "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: t}\nspec: {items: [{name: ITEM}]}\n"
	files := map[string]string{
		"a.yaml": strings.ReplaceAll(thing, "ITEM", "{{ .Values.item }}"), "p.yaml": strings.ReplaceAll(thing, "ITEM", "b"),
		"plain/kustomization.yaml":  "resources: [../a.yaml]\npatches: [{path: ../p.yaml}]\n",
		"schema/kustomization.yaml": "resources: [../a.yaml]\npatches: [{path: ../p.yaml}]\nopenapi: {path: ../s.json}\n",
		"s.json": `{"definitions":{"v1.Thing":{"properties":{"spec":{"properties":{"items":{"type":"array","items":{"type":"object"},
			"x-kubernetes-patch-merge-key":"name","x-kubernetes-patch-strategy":"merge"}}}},
			"x-kubernetes-group-version-kind":[{"group":"example.org","version":"v1","kind":"Thing"}]}}}`,
	}
	var wait sync.WaitGroup
	for root, want := range map[string]int{"plain": 1, "schema": 2} {
		g, err := kustomize.New(folder(files), root, kustomize.Options{Templates: &kustomize.Templates{}})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			wait.Go(func() {
				objects, err := manifests.Generate(t.Context(), g, "", "", types.UnstructurableMap{"item": fmt.Sprintf("a%d", i)})
				if err != nil {
					t.Error(err)
					return
				}
				items := contentOf(objects[0])["spec"].(map[string]any)["items"].([]any)
				if len(items) != want {
					t.Errorf("%s: got %v, want %d items", root, items, want)
				}
			})
		}
	}
	wait.Wait()
}

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// generate makes a generator and calls it.
func generate(ctx context.Context, files map[string]string, root string, options kustomize.Options, values map[string]any) ([]client.Object, error) {
	g, err := kustomize.New(folder(files), root, options)
	if err != nil {
		return nil, err
	}
	return manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
}

func names(objects []client.Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetName())
	}
	return strings.Join(all, " ")
}

func TestObjectsAreKnownByTheirTemplates(t *testing.T) {
	files := map[string]string{
		"kustomization.yaml": "resources: [a.yaml, b.yaml]\nnamePrefix: x-\npatches: [{path: p.yaml}]\nconfigMapGenerator: [{name: made, literals: [a=b]}]\n",
		"a.yaml":             configMap("a") + "---\n" + configMap("ab"), "b.yaml": "apiVersion: v1\nkind: Secret\nmetadata: {name: a}\n", "p.yaml": configMap("ab"),
	}
	const folder = "kustomization in folder ."
	for _, test := range []struct {
		templates *kustomize.Templates
		want      map[string]string
	}{
		{nil, map[string]string{"ConfigMap x-a": folder, "ConfigMap x-ab": folder, "Secret x-a": folder, "ConfigMap x-made-4h2mbtbbt6": folder}},
		{&kustomize.Templates{}, map[string]string{
			"ConfigMap x-a": "a.yaml", "ConfigMap x-ab": "a.yaml, p.yaml", "Secret x-a": "b.yaml", "ConfigMap x-made-4h2mbtbbt6": folder,
		}},
	} {
		ctx, origins := renders.WithOrigins(t.Context())
		objects, err := generate(ctx, files, ".", kustomize.Options{Templates: test.templates}, nil)
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, object := range objects {
			got[object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName()] = origins.Of(object)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("-want +got:\n%s", diff)
		}
	}
}

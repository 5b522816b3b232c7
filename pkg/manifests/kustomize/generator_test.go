// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

func TestAFolderWithoutAKustomizationGetsOne(t *testing.T) {
	objects := check.Must(generate(t.Context(), map[string]string{
		"root/b.yaml": configMap("b"), "root/sub/a.yml": configMap("a"), "root/readme.md": "x", "root/.hidden.yaml": configMap("hidden"),
		"root/own/kustomization.yaml": "resources: [x.yaml]\nnamePrefix: own-", "root/own/x.yaml": configMap("x"), "root/own/deep/y.yaml": configMap("y"),
		"root/empty.yaml": "---\n# nothing\n", "root/tests/t.yaml": configMap("t"), "root/skip.yaml": configMap("skip"), "root/kept-skip.yaml": configMap("kept"),
		"elsewhere.yaml": configMap("elsewhere"),
		".corbelignore":  "# comment\n*skip.yaml\n!kept-*\n/root/**/tests/\n",
	}, "root", kustomize.Options{}, nil))(t)
	check.Equal(t, "a b kept own-x", names(objects))
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
	objects := check.Must(generate(t.Context(), files, ".", options, map[string]any{"labels": map[string]any{"team": "x"}}))(t)
	want := map[string]any{"plain": "{{ .not }} a template", "file": "<< not a template >>", "exists": "false", "list": "[\"data/x.txt\"]"}
	check.Equal(t, want, contentOf(objects[0])["data"])
	if objects[0].GetName() != "app-a" || objects[0].GetLabels()["team"] != "x" {
		t.Errorf("got %s, labels %v", objects[0].GetName(), objects[0].GetLabels())
	}
}

func contentOf(object client.Object) map[string]any {
	return object.(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()
}

func TestIgnoredFilesAreNoTemplates(t *testing.T) {
	objects := check.Must(generate(t.Context(), map[string]string{
		"ignored.txt": "dashboards/\n", "kustomization.yaml": "configMapGenerator: [{name: a, files: [dashboards/d.json], options: {disableNameSuffixHash: true}}]",
		"dashboards/d.json": "{{ nonsense }}",
	}, ".", kustomize.Options{IgnoreFile: "ignored.txt", Templates: &kustomize.Templates{}}, nil))(t)
	check.Equal(t, map[string]any{"d.json": "{{ nonsense }}"}, contentOf(objects[0])["data"])
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
		g := check.Must(kustomize.New(folder(files), root, kustomize.Options{Templates: &kustomize.Templates{}}))(t)
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
		objects := check.Must(generate(ctx, files, ".", kustomize.Options{Templates: test.templates}, nil))(t)
		got := map[string]string{}
		for _, object := range objects {
			got[object.GetObjectKind().GroupVersionKind().Kind+" "+object.GetName()] = origins.Of(object)
		}
		check.Equal(t, test.want, got)
	}
}

func TestALinkThatLeavesTheRootIsNotFollowed(t *testing.T) {
	root, secret := t.TempDir(), filepath.Join(t.TempDir(), "secret.yaml")
	check.NoError(t, errors.Join(
		os.WriteFile(secret, []byte(configMap("secret")), 0o600),
		os.WriteFile(filepath.Join(root, "kustomization.yaml"), []byte("resources: [link.yaml]"), 0o600),
		os.Symlink(secret, filepath.Join(root, "link.yaml")),
	))
	osRoot := check.Must(os.OpenRoot(root))(t)
	defer func() { _ = osRoot.Close() }()
	check.Fails(t, check.ErrorOf(kustomize.New(osRoot.FS(), ".", kustomize.Options{FollowSymlinks: true})), "link.yaml")
}

func TestLinksThatNothingRefersToRefuseNothing(t *testing.T) {
	link := func(target string) *fstest.MapFile {
		return &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte(target)}
	}
	for name, test := range map[string]struct {
		root, kustomization, want string
		files                     fstest.MapFS
	}{
		"nothing refers to it":    {".", "resources: [a.yaml]", "", nil},
		"a file is needed":        {".", "resources: [b.yaml]", `resources[0]: "b.yaml": b.yaml: it is a symbolic link, want a regular file`, nil},
		"a folder is needed":      {".", "resources: [sub]", `resources[0]: "sub": sub: it is a symbolic link`, nil},
		"a file below is needed":  {".", "resources: [sub/a.yaml]", `resources[0]: "sub/a.yaml": sub: it is a symbolic link`, nil},
		"a pipe is needed":        {".", "resources: [p]", "p: it is no regular file", fstest.MapFS{"p": {Mode: fs.ModeNamedPipe}}},
		"a device is needed":      {".", "resources: [p]", "p: it is no regular file", fstest.MapFS{"p": {Mode: fs.ModeDevice}}},
		"it is the folder":        {"sub", "resources: [a.yaml]", `folder "sub": sub: it is a symbolic link`, nil},
		"it is the ignore file":   {".", "resources: [a.yaml]", ".corbelignore: it is a symbolic link", fstest.MapFS{".corbelignore": link("x")}},
		"all files count":         {"all", "", "all/a.yaml: it is a symbolic link", fstest.MapFS{"all/a.yaml": link("x"), "all/b.yaml": {Data: []byte(configMap("b"))}}},
		"all files but others":    {"all", "", "", fstest.MapFS{"all/a.txt": link("x"), "all/b.yaml": {Data: []byte(configMap("b"))}, "all/sub": link("..")}},
		"it is the kustomization": {"all", "", "all/kustomization.yaml: it is a symbolic link", fstest.MapFS{"all/kustomization.yaml": link("../kustomization.yaml"), "all/b.yaml": {Data: []byte(configMap("b"))}}},
	} {
		files := fstest.MapFS{"a.yaml": {Data: []byte(configMap("a"))}, "b.yaml": link("a.yaml"), "broken": link("nowhere"), "sub": link("."), "kustomization.yaml": {Data: []byte(test.kustomization)}}
		maps.Copy(files, test.files)
		_, err := kustomize.New(files, test.root, kustomize.Options{})
		if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
			t.Errorf("%s: got the error %v, want %q", name, err, test.want)
		}
	}
}

func TestNoEnvironmentVariableIsRead(t *testing.T) {
	t.Setenv("CORBEL_SECRET", "from the environment")
	for _, files := range []map[string]string{
		{"kustomization.yaml": "configMapGenerator: [{name: a, envs: [x.env]}]", "x.env": "CORBEL_SECRET\n"},
		{"kustomization.yaml": "configMapGenerator: [{name: a, literals: [CORBEL_SECRET]}]"},
		{"kustomization.yaml": "configMapGenerator: [{name: a, literals: ['x=$CORBEL_SECRET $(CORBEL_SECRET)']}]"},
	} {
		objects, err := generate(t.Context(), files, ".", kustomize.Options{Templates: &kustomize.Templates{}}, nil)
		if text := fmt.Sprint(objects, err); strings.Contains(text, "from the environment") {
			t.Errorf("%v: got %s", files, text)
		}
	}
}

// A matcher that backtracks would not come back from these.
func TestIgnoreFilesAreMatchedInLimitedTime(t *testing.T) {
	pattern := strings.Repeat("**/", 200) + strings.Repeat("*a", 50) + "b\n"
	name := strings.Repeat("a/", 100) + strings.Repeat("a", 200) + ".yaml"
	objects, err := generate(t.Context(), map[string]string{".corbelignore": strings.Repeat(pattern, 20), name: configMap("a")}, ".", kustomize.Options{}, nil)
	if err != nil || names(objects) != "a" {
		t.Errorf("got %v, %v", objects, err)
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

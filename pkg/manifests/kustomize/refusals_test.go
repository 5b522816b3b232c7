// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

func TestNothingOutsideTheRootIsRead(t *testing.T) {
	secret := filepath.Join(t.TempDir(), "secret.yaml")
	if err := os.WriteFile(secret, []byte(configMap("secret")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{secret, "../secret.yaml", "../../../../../.." + secret, "sub/../../secret.yaml"} {
		for _, text := range []string{"resources: ['%s']", "configMapGenerator: [{name: a, files: ['k=%s']}]", "patches: [{path: '%s'}]", "components: ['%s']"} {
			_, err := generate(t.Context(), map[string]string{"kustomization.yaml": fmt.Sprintf(text, p), "secret.yaml": configMap("other")}, ".", kustomize.Options{}, nil)
			if err == nil || !strings.Contains(err.Error(), "it leads out of the root") {
				t.Errorf("%s: got the error %v", fmt.Sprintf(text, p), err)
			}
		}
	}
	root := t.TempDir()
	if err := errors.Join(
		os.WriteFile(filepath.Join(root, "kustomization.yaml"), []byte("resources: [link.yaml]"), 0o600),
		os.Symlink(secret, filepath.Join(root, "link.yaml")),
	); err != nil {
		t.Fatal(err)
	}
	if _, err := kustomize.New(os.DirFS(root), ".", kustomize.Options{}); err == nil || !strings.Contains(err.Error(), "link.yaml: it is a symbolic link") {
		t.Errorf("got the error %v", err)
	}
	osRoot, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = osRoot.Close() }()
	if _, err := kustomize.New(osRoot.FS(), ".", kustomize.Options{FollowSymlinks: true}); err == nil || !strings.Contains(err.Error(), "link.yaml") {
		t.Errorf("got the error %v", err)
	}
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

func TestNoCodeIsRun(t *testing.T) {
	touched := filepath.Join(t.TempDir(), "touched")
	function := "apiVersion: example.org/v1\nkind: Run\nmetadata:\n  name: r\n  annotations:\n    config.kubernetes.io/function: |\n      exec: {path: /bin/touch, args: [" + touched + "]}\n"
	for field, text := range map[string]string{
		"generators[0]":                            "generators:\n- |-\n  " + strings.ReplaceAll(function, "\n", "\n  "),
		"run.yaml: document 1":                     "resources: [a.yaml]\ntransformers: [run.yaml]",
		"helmCharts":                               "helmCharts: [{name: c}]",
		"helmChartInflationGenerator":              "helmChartInflationGenerator: [{chartName: c}]",
		"validators[0]":                            "resources: [a.yaml]\nvalidators: ['{apiVersion: builtin, kind: HelmChartInflationGenerator, metadata: {name: x}, name: c}']",
		"folder plugins: it configures generators": "resources: [a.yaml]\ntransformers: [plugins]",
	} {
		_, err := generate(t.Context(), map[string]string{
			"kustomization.yaml": text, "a.yaml": configMap("a"), "run.yaml": function,
			"plugins/kustomization.yaml": "resources: [../run.yaml]\nnamePrefix: x-",
		}, ".", kustomize.Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("got the error %v, want it to name %s", err, field)
		}
	}
	if _, err := os.Stat(touched); !errors.Is(err, fs.ErrNotExist) {
		t.Error("the function was run")
	}
}

func TestNoEnvironmentVariableIsRead(t *testing.T) {
	t.Setenv("CORBEL_SECRET", "from the environment")
	for _, files := range []map[string]string{
		{"kustomization.yaml": "configMapGenerator: [{name: a, envs: [x.env]}]", "x.env": "CORBEL_SECRET\n"},
		{"kustomization.yaml": "configMapGenerator: [{name: a, literals: [CORBEL_SECRET]}]"},
		{"kustomization.yaml": "configMapGenerator: [{name: a, literals: ['x=$CORBEL_SECRET $(CORBEL_SECRET)']}]"},
		{"a.yaml": configMap("a") + "data: {x: '{{ env \"CORBEL_SECRET\" }}'}\n"},
	} {
		objects, err := generate(t.Context(), files, ".", kustomize.Options{Templates: &kustomize.Templates{}}, nil)
		if text := fmt.Sprint(objects, err); strings.Contains(text, "from the environment") {
			t.Errorf("%v: got %s", files, text)
		}
	}
}

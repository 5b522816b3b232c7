// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
)

const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n"

func named(name string) string { return strings.ReplaceAll(configMap, "name: a", "name: "+name) }

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func TestFromFSReadsTheFilesInOrder(t *testing.T) {
	fsys := folder(map[string]string{
		"m/b.yaml": named("b1") + "---\n" + named("b2"), "m/a.yml": named("a"), "m/c.json": `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"}}`,
		"m/sub/d.YAML": named("d"), "m/sub/deep/e.yaml": named("e"), "m/empty.yaml": "# nothing\n", "m/readme.md": "{{", "m/.hidden.yaml": "{{", "m/.git/x.yaml": "{{",
		"other/x.yaml": "{{",
	})
	tests := []struct {
		name, root string
		options    []manifests.FSOption
		want       []string
	}{
		{"all", "m", nil, []string{"a", "b1", "b2", "c", "d", "e"}},
		{"a slash at the end", "m/", nil, []string{"a", "b1", "b2", "c", "d", "e"}},
		{"a folder below", "m/sub", nil, []string{"d", "e"}},
		{"a file", "m/b.yaml", nil, []string{"b1", "b2"}},
		{"without folders below", "m", []manifests.FSOption{manifests.TopLevelOnly()}, []string{"a", "b1", "b2", "c"}},
		{"by name", "m", []manifests.FSOption{manifests.Include("[ae].y*ml", "c.*")}, []string{"a", "c", "e"}},
		{"by path", "m", []manifests.FSOption{manifests.Include("sub/*")}, []string{"d"}},
		{"without some", "m", []manifests.FSOption{manifests.Include("*.y*ml"), manifests.Exclude("a.*", "sub/deep/*"), nil}, []string{"b1", "b2"}},
		{"the whole file system", "", []manifests.FSOption{manifests.Exclude("other/*")}, []string{"a", "b1", "b2", "c", "d", "e"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := manifests.FromFS(fsys, test.root, test.options...)
			if err != nil {
				t.Fatal(err)
			}
			objects, err := manifests.Generate(t.Context(), g, "", "", nil)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, namesOf(objects)); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestFromFSServesCopies(t *testing.T) {
	g, err := manifests.FromFS(folder(map[string]string{"a.yaml": configMap + "data:\n  k: v\n"}), ".")
	if err != nil {
		t.Fatal(err)
	}
	c := manifeststest.Case{Generator: g}
	if got := c.Render(t)[0].Object["data"].(map[string]any)["k"]; got != "v" {
		t.Errorf("got %v", got)
	}
	c.Deterministic(t)
}

func TestFromFSReportsAllMistakesAtOnceAndAgain(t *testing.T) {
	g, err := manifests.FromFS(folder(map[string]string{
		"a.yaml": "a: b: c\n---\nkind: x\n" + configMap, "b.yaml": configMap, "sub/c.yaml": "\n\n- x\n",
	}), ".")
	want := []string{
		"a.yaml: document 1, line 1: mapping values are not allowed in this context",
		`a.yaml: document 2, line 5: key "kind" is set twice, first in line 3`,
		"sub/c.yaml: document 1, line 3: want an object, got a list",
	}
	if err == nil {
		t.Fatal("got no error")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if _, again := manifests.Generate(t.Context(), g, "", "", nil); again == nil || again.Error() != err.Error() {
		t.Errorf("the generator returns the error %v", again)
	}
}

func TestFromFSRefusesFolders(t *testing.T) {
	fsys := folder(map[string]string{"m/a.yaml": configMap, "m/b.yaml": configMap, "n/readme": ""})
	small := manifests.MaxFileSize(int64(len(configMap) - 1))
	tests := []struct {
		name, root string
		options    []manifests.FSOption
		want       string
	}{
		{"that do not exist", "x", nil, "x: file does not exist"},
		{"outside", "../m", nil, `folder "../m": want a slash-separated path below the root`},
		{"with absolute paths", "/m", nil, `folder "/m": want a slash-separated path`},
		{"without manifests", "n", nil, `folder "n" holds no file to read (.yaml, .yml, .json)`},
		{"with large files", "m", []manifests.FSOption{small}, fmt.Sprintf("m/a.yaml: it is larger than %d bytes\nm/b.yaml: it is larger than", len(configMap)-1)},
		{"that are large", "m", []manifests.FSOption{manifests.MaxTotalSize(int64(len(configMap) + 1))}, "m/b.yaml: the files are too large together: more than"},
		{"for bad patterns", "m", []manifests.FSOption{manifests.Include("[")}, `pattern "[": syntax error in pattern`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g, err := manifests.FromFS(fsys, test.root, test.options...)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %v, want it to contain %q", err, test.want)
			}
			if _, again := g.Generate(t.Context(), "", "", nil); again == nil {
				t.Error("the generator returns no error")
			}
		})
	}
	if _, err := manifests.FromFS(nil, "."); err == nil || err.Error() != "the file system is nil" {
		t.Errorf("nil: got the error %v", err)
	}
}

func TestFromFSFollowsLinksOnlyIfConfigured(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "secret.yaml")
	for path, text := range map[string]string{outside: named("outside"), filepath.Join(dir, "..data.yaml"): named("hidden")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("..data.yaml", filepath.Join(dir, "a.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := manifests.FromFS(os.DirFS(dir), "."); err == nil || !strings.Contains(err.Error(), "a.yaml: it is a symbolic link") {
		t.Errorf("got the error %v", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	g, err := manifests.FromFS(root.FS(), ".", manifests.FollowSymlinks())
	if err != nil {
		t.Fatal(err)
	}
	objects, err := g.Generate(t.Context(), "", "", nil)
	if diff := cmp.Diff([]string{"hidden"}, namesOf(objects)); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	if err := os.Symlink(outside, filepath.Join(dir, "b.yaml")); err != nil {
		t.Fatal(err)
	}
	if _, err := manifests.FromFS(root.FS(), ".", manifests.FollowSymlinks()); err == nil {
		t.Error("a link that leads out of the root was followed")
	}
}

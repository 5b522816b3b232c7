// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/corbel-run/corbel/test/check"
)

const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"

// layout has an overlay that refers to the folders beside it.
var layout = []string{
	"config/default/kustomization.yaml", "resources: [../rbac, ../manager]\n#- ../webhook\npatches: [{path: patch.yaml}]\n", "config/default/patch.yaml", object,
	"config/default/notes.md", "", "config/rbac/kustomization.yml", "resources: [role.yaml]", "config/rbac/role.yaml", object,
	"config/manager/Kustomization", "configMapGenerator: [{name: b, files: [b=settings.txt]}]", "config/manager/settings.txt", "x", "config/webhook/kustomization.yaml", "",
	"go.mod", "module a",
}

func TestAKustomizationIsCopiedWithItsReferences(t *testing.T) {
	plugin := func(path string) string {
		return "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: a}\ntarget: {kind: ConfigMap}\npath: " + path + "\n"
	}
	inline := "transformers:\n- |-\n  " + strings.ReplaceAll(plugin("../inline.yaml"), "\n", "\n  ") + "\n- label.yaml\n- ../plugins\n"
	for name, test := range map[string]struct {
		folder string // of the kustomization
		files  []string
		links  map[string]string
		git    string // the folder of the repository
		in     string // the current folder
		want   []string
		wrong  []string
	}{
		"folders beside it": {folder: "config/default", files: layout, git: ".", want: []string{
			"default", "default/kustomization.yaml", "default/patch.yaml", "manager/Kustomization", "manager/settings.txt", "rbac/kustomization.yml", "rbac/role.yaml",
		}},
		"the current folder": {folder: "config/rbac", files: layout, in: ".", want: []string{"", "kustomization.yml", "role.yaml"}},
		"every field": {folder: "a/b", git: ".", files: []string{
			"a/b/kustomization.yaml", "components: [../c]\ncrds: [crd.json]\nconfigurations: [../d.yaml]\nopenapi: {path: ../../e.json}\nreplacements: [{path: r.yaml}]\n" +
				"secretGenerator: [{name: s, envs: [../s.env]}]\npatchesStrategicMerge: [m.yaml]\n" + inline,
			"a/c/kustomization.yaml", "kind: Component\napiVersion: kustomize.config.k8s.io/v1alpha1\n", "a/b/crd.json", "{}", "a/d.yaml", "", "e.json", "{}", "a/b/r.yaml", "", "a/s.env", "A=1",
			"a/b/m.yaml", object, "a/inline.yaml", object, "a/b/label.yaml", plugin("l.yaml"), "a/b/l.yaml", object, "a/plugins/kustomization.yaml", "resources: [p.yaml]", "a/plugins/p.yaml", plugin("q.yaml"),
			"a/plugins/q.yaml", object, "a/b/spare.yaml", object,
		}, want: []string{"a/b", "a/b/crd.json", "a/b/kustomization.yaml", "a/b/l.yaml", "a/b/label.yaml", "a/b/m.yaml", "a/b/r.yaml", "a/c/kustomization.yaml", "a/d.yaml", "a/inline.yaml",
			"a/plugins/kustomization.yaml", "a/plugins/p.yaml", "a/plugins/q.yaml", "a/s.env", "e.json"}},
		"links within the root": {folder: "overlay", git: ".", files: []string{
			"overlay/kustomization.yaml", "resources: [base, a.yaml]", "shared/base/kustomization.yaml", "resources: [b.yaml]", "shared/base/b.yaml", object, "shared/a.yaml", object,
		}, links: map[string]string{"overlay/base": "../shared/base", "overlay/a.yaml": "../shared/a.yaml"}, want: []string{"", "a.yaml", "base/b.yaml", "base/kustomization.yaml", "kustomization.yaml"}},
		"a circle": {folder: "a", git: ".", files: []string{"a/kustomization.yaml", "resources: [../b]", "b/kustomization.yaml", "resources: [../a]"}, want: []string{"a", "a/kustomization.yaml", "b/kustomization.yaml"}},
		"what leads out of the repository": {folder: "in/a", git: "in", files: []string{
			"in/a/kustomization.yaml", "resources: [../../out, 'https://example.org/a.yaml', linked.yaml, away, ../none]\nconfigMapGenerator: [{name: a, files: [/etc/passwd]}]\n", "out/kustomization.yaml", "",
			"out/a.yaml", object,
		}, links: map[string]string{"in/a/linked.yaml": "../../out/a.yaml", "in/a/away": "../../out"}, wrong: []string{
			"its root is the git repository ", "\na/linked.yaml: a link leads out of the root", "\na/away: a link leads out of the root", `a/kustomization.yaml: resources[0]: "../../out": it leads out of the root`,
			`resources[1]: "https://example.org/a.yaml": it leads to another machine`, `resources[4]: "../none": file does not exist`, `configMapGenerator[0].files[0]: "/etc/passwd": it leads out of the root`,
		}},
		"no repository, from above":   {folder: "config/default", files: layout, in: "config", want: []string{"default", "default/kustomization.yaml", "default/patch.yaml", "manager/Kustomization", "manager/settings.txt", "rbac/kustomization.yml", "rbac/role.yaml"}},
		"no repository, from outside": {folder: "config/default", files: layout, wrong: []string{"its root is its own folder, because it is neither in a git repository nor in the current folder (a command in a folder above may follow its references):\n", `resources[0]: "../rbac": it leads out of the root`, `resources[1]: "../manager"`}},
	} {
		t.Run(name, func(t *testing.T) {
			root, stage := t.TempDir(), t.TempDir()
			writeFiles(t, root, test.files...)
			for link, to := range test.links {
				check.NoError(t, os.Symlink(to, filepath.Join(root, link)))
			}
			if test.git != "" {
				check.NoError(t, os.Mkdir(filepath.Join(root, test.git, ".git"), 0o755))
			}
			t.Chdir(stage)
			if test.in != "" {
				t.Chdir(filepath.Join(root, test.in))
			}
			overlay, err := copyKustomization(filepath.Join(root, test.folder), filepath.Join(stage, "copy"))
			if len(test.wrong) > 0 {
				check.Fails(t, err, test.wrong...)
				return
			}
			check.NoError(t, err)
			got := []string{overlay}
			check.NoError(t, fs.WalkDir(os.DirFS(stage), ".", func(name string, entry fs.DirEntry, err error) error {
				if err == nil && !entry.IsDir() {
					got = append(got, strings.TrimPrefix(name, "copy/"))
				}
				return err
			}))
			check.Equal(t, test.want, got)
		})
	}
}

func TestAnOverlayIsBuiltInItsCopy(t *testing.T) {
	source := Source{Form: FormKustomize, Path: filepath.Join(t.TempDir(), "config", "default")}
	root := filepath.Dir(filepath.Dir(source.Path))
	writeFiles(t, root, append(layout, ".git/config", "")...)
	project := filepath.Join(t.TempDir(), "shop-operator")
	check.Must(Create(t.Context(), Options{Kind: "Shop", Group: "shop.example.com"}, source, Corbel{Version: "v0.0.0"}, project, Toolchain{Go: "true"}))(t)
	check.Contains(t, read(t, project, "main.go"), `kustomize.New(files, "kustomization/default", kustomize.Options{})`, "//go:embed all:kustomization\n")
	check.Contains(t, read(t, project, recordFile), "\noverlay: default\n")
	check.Contains(t, read(t, project, "README.md"), "- `kustomization/default` is what is rendered.")
	update := func(source Source) []string {
		return check.Must(Update(t.Context(), project, source, Corbel{Version: "v0.0.0"}, Toolchain{Go: "true"}))(t).Files
	}
	check.EqualNamed(t, "changed by an update without a source", []string(nil), update(Source{}))
	writeFiles(t, root, "config/rbac/role.yaml", object+"data: {a: b}\n", "config/manager/Kustomization", "resources: [../../more.yaml]", "more.yaml", strings.Replace(object, "name: a", "name: more", 1))
	got := update(source)
	check.EqualNamed(t, "changed by an update", []string{
		"README.md", "kustomization/config/default/kustomization.yaml", "kustomization/config/default/patch.yaml", "kustomization/config/manager/Kustomization", "kustomization/config/rbac/kustomization.yml",
		"kustomization/config/rbac/role.yaml", "kustomization/default/kustomization.yaml", "kustomization/default/patch.yaml", "kustomization/manager/Kustomization", "kustomization/manager/settings.txt",
		"kustomization/more.yaml", "kustomization/rbac/kustomization.yml", "kustomization/rbac/role.yaml", "main.go", goldenFile,
	}, got)
	check.Contains(t, read(t, project, "main.go"), `"kustomization/config/default"`)
}

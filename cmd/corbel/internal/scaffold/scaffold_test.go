// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/modfile"

	"github.com/corbel-run/corbel/test/check"
)

func TestAllMistakesInOptionsAreListed(t *testing.T) {
	o := Options{Name: "Shop_Operator", Kind: "shop", Group: "shop", Version: "1", Module: "a b", Spec: "some", Form: FormGo, Fields: []string{"a"}}
	check.Fails(t, o.validate(), "name of the operator", "--kind", "--group", "--version", "--module", "--spec \"some\"", "are for charts")
	for _, name := range []string{"on", "2048", "true", "Shop", "a_b_c"} {
		o := Options{Name: name, Kind: "Shop", Group: "shop.example.com", Form: FormGo}
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), "name of the operator") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, kind := range []string{"ShopList", "ShopValues", "Sh op", "", "GroupVersion", "Groupversion", "SchemeBuilder", strings.Repeat("A", 60)} {
		o := Options{Name: "shop-operator", Kind: kind, Group: "shop.example.com", Form: FormChart}
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), "--kind") {
			t.Errorf("%q: got %v", kind, err)
		}
	}
	good := Options{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Form: FormChart}
	if err := good.validate(); err != nil || good.Module != "shop.example.com/shop-operator" || good.API() != "shop.example.com/shop-operator/api/v1alpha1" {
		t.Errorf("got %+v, %v", good, err)
	}
	for kind, want := range map[string]string{
		"Shop": "shops", "Proxy": "proxies", "Policy": "policies", "Gateway": "gateways", "Ingress": "ingresses", "Prometheus": "prometheuses", "Redis": "redises",
		"Box": "boxes", "Batch": "batches", "Mesh": "meshes", "Database": "databases",
	} {
		check.SameNamed(t, kind, want, (Options{Kind: kind}).Plural())
	}
}

// archive returns a packed chart with the files.
func archive(t *testing.T, files map[string]string, links ...string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	add := func(header *tar.Header, text string) {
		check.NoError(t, packed.WriteHeader(header))
		check.Must(packed.Write([]byte(text)))(t)
	}
	for name, text := range files {
		add(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}, text)
	}
	for _, name := range links {
		add(&tar.Header{Name: name, Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, "")
	}
	check.NoError(t, packed.Close())
	check.NoError(t, zipped.Close())
	name := filepath.Join(t.TempDir(), "chart.tgz")
	check.NoError(t, os.WriteFile(name, out.Bytes(), 0o644))
	return name
}

func TestSources(t *testing.T) {
	folder := t.TempDir()
	writeFiles(t, folder, "Chart.yaml", "name: a", "templates/_helpers.tpl", "x", "templates/.hidden", "x", ".git/config", "x", "shared/a.txt", "x", "docs/a.md", "x",
		"ci/deep/values.yaml", "x", "charts/db/README.md", "x", ".helmignore", "# what is not packed\n/docs/\nci/\n*.md\n")
	check.NoError(t, os.Symlink("shared", filepath.Join(folder, "linked")))
	outside := t.TempDir()
	check.NoError(t, os.Symlink("/etc/passwd", filepath.Join(outside, "kustomization.yaml")))
	linked := t.TempDir() // as a repository of charts has them that share files
	check.NoError(t, os.Symlink(filepath.Join(folder, "Chart.yaml"), filepath.Join(linked, "Chart.yaml")))
	check.NoError(t, os.Symlink(filepath.Join(folder, "templates"), filepath.Join(linked, "templates")))
	dangling := t.TempDir()
	check.NoError(t, os.Symlink("none", filepath.Join(dangling, "Chart.yaml")))
	noChart := filepath.Join(t.TempDir(), "notes.txt")
	check.NoError(t, os.WriteFile(noChart, []byte("text"), 0o644))
	for name, test := range map[string]struct {
		form   Form
		origin string
		want   string
	}{
		"a folder":                       {FormChart, folder, ""},
		"a packed chart":                 {FormChart, archive(t, map[string]string{"a/Chart.yaml": "name: a", "a/templates/_helpers.tpl": "x"}), ""},
		"nothing":                        {FormChart, filepath.Join(folder, "none"), "there is no file or folder"},
		"no chart":                       {FormChart, t.TempDir(), "is not a Helm chart: it has no file Chart.yaml"},
		"no kustomization":               {FormKustomize, folder, "is not a kustomization: it has no file kustomization.yaml"},
		"a text":                         {FormChart, noChart, "it is not a packed chart"},
		"a file for a kustomization":     {FormKustomize, noChart, "is not a folder"},
		"links out of a chart":           {FormChart, linked, ""},
		"a link that leads to nothing":   {FormChart, dangling, "Chart.yaml is a link that cannot be followed: put a copy in its place"},
		"a link that leads out of it":    {FormKustomize, outside, "kustomization.yaml: a link leads out of the root"},
		"a packed file that leads out":   {FormChart, archive(t, map[string]string{"a/../../b": "x"}), "is not inside the folder of the chart"},
		"a packed link":                  {FormChart, archive(t, nil, "a/link"), "is neither a file nor a folder"},
		"a packed file without a folder": {FormChart, archive(t, map[string]string{"Chart.yaml": "x"}), "is not inside the folder of the chart"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := t.TempDir()
			_, err := Source{Form: test.form, Path: test.origin}.copyTo(stage, &Options{})
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			check.NoError(t, err)
			if _, err := os.Stat(filepath.Join(stage, "chart", "templates", "_helpers.tpl")); err != nil {
				t.Error(err)
			}
			for _, name := range []string{".git", "docs", "ci", "charts/db/README.md", "templates/.hidden"} {
				if _, err := os.Stat(filepath.Join(stage, "chart", name)); err == nil {
					t.Errorf("%s was copied, and Helm does not load it", name)
				}
			}
		})
	}
}

func TestTheProjectRequiresTheLibraryAndTheCommand(t *testing.T) {
	const library, command = "github.com/corbel-run/corbel", "github.com/corbel-run/corbel/cmd/corbel"
	for _, test := range []struct {
		corbel Corbel
		want   []string
	}{
		{Corbel{Version: "v1.2.3"}, nil},
		{Corbel{Version: "v0.0.0", Folder: "/src/corbel"}, []string{library + " => /src/corbel", command + " => /src/corbel/cmd/corbel"}},
	} {
		project := filepath.Join(t.TempDir(), "shop-operator")
		check.Must(Create(t.Context(), Options{Kind: "Shop", Group: "shop.example.com"}, Source{Form: FormGo}, test.corbel, project, Toolchain{Go: "true"}))(t)
		parsed := check.Must(modfile.Parse("go.mod", []byte(read(t, project, "go.mod")), nil))(t)
		var required, replaced []string
		for _, r := range parsed.Require {
			required = append(required, r.Mod.String())
		}
		for _, r := range parsed.Replace {
			replaced = append(replaced, r.Old.Path+" => "+r.New.Path)
		}
		check.EqualNamed(t, "required", []string{library + "@" + test.corbel.Version, command + "@" + test.corbel.Version}, required)
		check.EqualNamed(t, "replaced", test.want, replaced)
	}
}

// script returns a go command that a test has written.
func script(t *testing.T, text string) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "go")
	check.NoError(t, os.WriteFile(name, []byte("#!/bin/sh\n"+text), 0o700))
	return name
}

func TestGoIsCalledWithoutCgo(t *testing.T) {
	variable := func() string {
		return string(check.Must(GoCommand(t.Context(), script(t, "echo $CGO_ENABLED")).Output())(t))
	}
	t.Setenv("CGO_ENABLED", "1")
	check.SameNamed(t, "as the environment says", "1\n", variable())
	check.NoError(t, os.Unsetenv("CGO_ENABLED"))
	check.SameNamed(t, "by default", "0\n", variable())
}

func TestNothingIsLeftOfAProjectThatCannotBeMade(t *testing.T) {
	o, goCode := Options{Kind: "Shop", Group: "shop.example.com"}, Source{Form: FormGo}
	chart := func(files ...string) Source {
		folder := t.TempDir()
		writeFiles(t, folder, files...)
		return Source{Form: FormChart, Path: folder}
	}
	head := "apiVersion: v2\nname: shop\nversion: 1.0.0\n"
	for name, test := range map[string]struct {
		options Options
		source  Source
		tools   Toolchain
		want    string
	}{
		"a mistake":                {Options{Kind: "Shop"}, goCode, Toolchain{}, "--group"},
		"no source":                {o, Source{Form: FormChart, Path: "none"}, Toolchain{}, "there is no file or folder none"},
		"no go command":            {o, goCode, Toolchain{Go: "no-go-command"}, "there is no go command"},
		"a go that fails":          {o, goCode, Toolchain{Go: "false"}, "resolve the modules (go mod tidy): exit status 1"},
		"no network":               {o, goCode, Toolchain{Go: script(t, "echo dial tcp: lookup proxy; exit 1")}, "modules cannot be downloaded; check the network and GOPROXY (go mod tidy)"},
		"a definition of 1 MiB":    {o, goCode, Toolchain{Go: script(t, "mkdir -p deploy/files; head -c 1100000 /dev/zero | tr '\\0' x >deploy/files/crd.yaml")}, "has 1074 KiB, and the API server accepts about 1024: type fewer values"},
		"values that are no YAML":  {o, chart("Chart.yaml", head, "values.yaml", "a: [1"), Toolchain{Go: "true"}, "the values of the chart: values.yaml is not valid YAML"},
		"values that are a list":   {o, chart("Chart.yaml", head, "values.yaml", "[1]"), Toolchain{Go: "true"}, "values.yaml is a list; it has to be an object"},
		"a schema that is none":    {o, chart("Chart.yaml", head, "values.schema.json", "{"), Toolchain{Go: "true"}, "values.schema.json is not valid JSON"},
		"a chart that is not read": {o, chart("Chart.yaml", "name: [", "values.yaml", "a: 1"), Toolchain{Go: "true"}, "the chart cannot be loaded: chart chart: "},
		"a library":                {o, chart("Chart.yaml", head+"type: library\n"), Toolchain{Go: "true"}, "library charts are not installable"},
		"a missing sub-chart":      {o, chart("Chart.yaml", head+"dependencies: [{name: db, version: 1.0.0}]\n"), Toolchain{Go: "true"}, "sub-chart db 1.0.0 of chart shop: the folder charts does not have it: put it there"},
		"a template that is none":  {o, chart("Chart.yaml", head, "templates/a.yaml", "{{ if }}"), Toolchain{Go: "true"}, "templates/a.yaml"},
		"bad rules to ignore":      {o, chart("Chart.yaml", head, ".helmignore", "a/**"), Toolchain{Go: "true"}, ".helmignore: double-star (**) syntax is not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			parent := t.TempDir()
			target := filepath.Join(parent, "made", "on the way", "shop-operator")
			_, err := Create(t.Context(), test.options, test.source, Corbel{Version: "v0.0.0"}, target, test.tools)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
	parent := t.TempDir()
	writeFiles(t, parent, "shop-operator/mine", "x", "file", "x")
	for want, target := range map[string]string{
		"exists and is not empty":                  filepath.Join(parent, "shop-operator"),
		"the folder of the project cannot be made": "/proc/none/shop-operator", // even root cannot write there
		"the folder of the project cannot be used": filepath.Join(parent, "file", "shop-operator"),
	} {
		if _, err := Create(t.Context(), o, goCode, Corbel{}, target, Toolchain{Go: "true"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", target, err)
		}
	}
}

// writeFiles writes files, given by name and text, into a folder.
func writeFiles(t *testing.T, folder string, files ...string) {
	t.Helper()
	for i := 0; i < len(files); i += 2 {
		check.NoError(t, writeFile(filepath.Join(folder, files[i]), []byte(files[i+1])))
	}
}

func TestAnUpdateTakesItsSourceFromOutside(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shop-operator")
	o := Options{Name: "shop-operator", Module: "example.com/a", Kind: "Shop", Group: "shop.example.com", Version: "v1", Form: FormChart}
	check.NoError(t, writeFile(filepath.Join(folder, "chart", "Chart.yaml"), []byte("name: a")))
	check.Must(recordOf(o, folder))(t)
	for want, source := range map[string]Source{
		"is a part of the project":                       {Form: FormChart, Path: filepath.Join(folder, "chart")},
		"made from a source of the form chart, not yaml": {Form: FormYAML, Path: t.TempDir()},
	} {
		if _, err := Update(t.Context(), folder, source, Corbel{}, Toolchain{Go: "false"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

func TestMergeKeepsWhatTheAuthorHasChanged(t *testing.T) {
	file := func(texts ...string) map[string][]byte {
		files := map[string][]byte{}
		for i := 0; i < len(texts); i += 2 {
			files[texts[i]] = []byte(texts[i+1])
		}
		return files
	}
	base := file("same", "1", "newer", "1", "edited", "1", "both", "1\n2\n3\n4\n5\n", "clash", "1\n", "dropped", "1", "dropped and edited", "1", "removed", "1", "binary", "\x00")
	ours := file("same", "1", "newer", "1", "edited", "mine", "both", "mine\n2\n3\n4\n5\n", "clash", "mine\n", "dropped", "1", "dropped and edited", "mine", "own", "mine", "added by both", "mine\n", "binary", "\x00mine")
	next := file("same", "1", "newer", "2", "edited", "1", "both", "1\n2\n3\n4\nnew\n", "clash", "new\n", "added", "new", "added by both", "new\n", "removed", "2", "binary", "\x00new")
	changed, conflicts, err := merge(t.Context(), base, ours, next)
	check.NoError(t, err)
	texts := map[string]string{}
	for name, content := range changed {
		texts[name] = string(content)
		if content == nil {
			texts[name] = "(removed)"
		}
	}
	want := map[string]string{
		"newer": "2", "both": "mine\n2\n3\n4\nnew\n", "added": "new", "dropped": "(removed)",
		"clash": "<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> update\n", "added by both": "<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> update\n",
	}
	check.EqualNamed(t, "changed", want, texts)
	check.EqualNamed(t, "conflicts", []string{"added by both", "binary (it stays as it is)", "clash", "dropped and edited (it stays as it is)"}, conflicts)
}

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

	"github.com/google/go-cmp/cmp"
)

func TestAllMistakesInOptionsAreListed(t *testing.T) {
	o := Options{Name: "Shop_Operator", Kind: "shop", Group: "shop", Version: "1", Module: "a b", Spec: "some", Form: FormGo, Fields: []string{"a"}}
	err := o.validate()
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"name of the operator", "--kind", "--group", "--version", "--module", "--spec \"some\"", "are for charts"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("lacks %q:\n%v", want, err)
		}
	}
	for _, name := range []string{"on", "2048", "true", "Shop", "a_b_c"} {
		o := Options{Name: name, Kind: "Shop", Group: "shop.example.com", Form: FormGo}
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), "name of the operator") {
			t.Errorf("%q: got %v", name, err)
		}
	}
	for _, kind := range []string{"ShopList", "ShopValues", "Sh op", "", "GroupVersion", "Groupversion", "SchemeBuilder"} {
		o := Options{Name: "shop-operator", Kind: kind, Group: "shop.example.com", Form: FormChart}
		if err := o.validate(); err == nil || !strings.Contains(err.Error(), "--kind") {
			t.Errorf("%q: got %v", kind, err)
		}
	}
	good := Options{Name: "shop-operator", Kind: "Shop", Group: "shop.example.com", Form: FormChart}
	if err := good.validate(); err != nil || good.Module != "shop.example.com/shop-operator" || good.API() != "shop.example.com/shop-operator/api/v1alpha1" {
		t.Errorf("got %+v, %v", good, err)
	}
	for kind, want := range map[string]string{"Shop": "shops", "Proxy": "proxies", "Gateway": "gateways", "Redis": "redises", "Box": "boxes"} {
		if got := (Options{Kind: kind}).Plural(); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

// archive returns a packed chart with the files.
func archive(t *testing.T, files map[string]string, links ...string) string {
	t.Helper()
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	packed := tar.NewWriter(zipped)
	add := func(header *tar.Header, text string) {
		if err := packed.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := packed.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		add(&tar.Header{Name: name, Mode: 0o644, Size: int64(len(text)), Typeflag: tar.TypeReg}, text)
	}
	for _, name := range links {
		add(&tar.Header{Name: name, Linkname: "/etc/passwd", Typeflag: tar.TypeSymlink}, "")
	}
	if err := packed.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "chart.tgz")
	if err := os.WriteFile(name, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestSources(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"Chart.yaml": "name: a", "templates/_helpers.tpl": "x", ".git/config": "x"} {
		if err := writeFile(filepath.Join(folder, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	outside := t.TempDir()
	if err := os.Symlink("/etc/passwd", filepath.Join(outside, "Chart.yaml")); err != nil {
		t.Fatal(err)
	}
	noChart := filepath.Join(t.TempDir(), "notes.txt")
	if err := os.WriteFile(noChart, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
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
		"a link that leads out of it":    {FormChart, outside, "Chart.yaml"},
		"a packed file that leads out":   {FormChart, archive(t, map[string]string{"a/../../b": "x"}), "is not inside the folder of the chart"},
		"a packed link":                  {FormChart, archive(t, nil, "a/link"), "is neither a file nor a folder"},
		"a packed file without a folder": {FormChart, archive(t, map[string]string{"Chart.yaml": "x"}), "is not inside the folder of the chart"},
	} {
		t.Run(name, func(t *testing.T) {
			stage := t.TempDir()
			err := Source{test.form, test.origin}.copyTo(stage)
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want %q", err, test.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Stat(filepath.Join(stage, "chart", "templates", "_helpers.tpl")); err != nil {
				t.Error(err)
			}
			if _, err := os.Stat(filepath.Join(stage, "chart", ".git")); err == nil {
				t.Error("the repository was copied")
			}
		})
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
	ours := file("same", "1", "newer", "1", "edited", "mine", "both", "mine\n2\n3\n4\n5\n", "clash", "mine\n", "dropped", "1", "dropped and edited", "mine", "own", "mine", "binary", "\x00mine")
	next := file("same", "1", "newer", "2", "edited", "1", "both", "1\n2\n3\n4\nnew\n", "clash", "new\n", "added", "new", "removed", "2", "binary", "\x00new")
	changed, conflicts, err := merge(t.Context(), base, ours, next)
	if err != nil {
		t.Fatal(err)
	}
	texts := map[string]string{}
	for name, content := range changed {
		texts[name] = string(content)
		if content == nil {
			texts[name] = "(removed)"
		}
	}
	want := map[string]string{
		"newer": "2", "both": "mine\n2\n3\n4\nnew\n", "added": "new", "dropped": "(removed)",
		"clash": "<<<<<<< yours\nmine\n=======\nnew\n>>>>>>> update\n",
	}
	if diff := cmp.Diff(want, texts); diff != "" {
		t.Errorf("changed (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"binary (it stays as it is)", "clash", "dropped and edited (it stays as it is)"}, conflicts); diff != "" {
		t.Errorf("conflicts (-want +got):\n%s", diff)
	}
}

func TestTheRecordOfAProject(t *testing.T) {
	folder := t.TempDir()
	for name, text := range map[string]string{"main.go": "package main", "chart/values.yaml": "a: 1", "go.sum": "x", "bin/operator": "x", ".git/HEAD": "x", "deploy/files/crd.yaml": "x"} {
		if err := writeFile(filepath.Join(folder, name), []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	o := Options{Name: "a", Module: "example.com/a", Kind: "Shop", Group: "shop.example.com", Version: "v1", Form: FormChart, Origin: "./shop"}
	names, err := recordOf(o, folder)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"main.go", "corbel.yaml"}, names); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if read, err := readRecord(folder); err != nil || cmp.Diff(o, read) != "" {
		t.Errorf("got %+v, %v", read, err)
	}
	packed, err := os.ReadFile(filepath.Join(folder, ".corbel", "base.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	base, err := unpackFiles(packed)
	if diff := cmp.Diff(map[string][]byte{"main.go": []byte("package main"), "chart/values.yaml": []byte("a: 1")}, base); diff != "" || err != nil {
		t.Errorf("error %v, base (-want +got):\n%s", err, diff)
	}
	if _, err := readRecord(t.TempDir()); err == nil || !strings.Contains(err.Error(), "is not a project of corbel init") {
		t.Errorf("got %v", err)
	}
}

func TestNothingIsLeftOfAProjectThatCannotBeMade(t *testing.T) {
	parent := t.TempDir()
	target := filepath.Join(parent, "shop-operator")
	o, goCode := Options{Kind: "Shop", Group: "shop.example.com"}, Source{Form: FormGo}
	for name, test := range map[string]struct {
		options Options
		source  Source
		tools   Toolchain
		want    string
	}{
		"a mistake":       {Options{Kind: "Shop"}, goCode, Toolchain{}, "--group"},
		"no source":       {o, Source{FormChart, "none"}, Toolchain{}, "there is no file or folder none"},
		"no go command":   {o, goCode, Toolchain{Go: "no-go-command"}, "there is no go command"},
		"a go that fails": {o, goCode, Toolchain{Go: "false"}, "resolve the modules (go mod tidy): exit status 1"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Create(t.Context(), test.options, test.source, Corbel{Version: "v0.0.0"}, target, test.tools)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
			if entries, err := os.ReadDir(parent); err != nil || len(entries) > 0 {
				t.Errorf("left: %v, %v", entries, err)
			}
		})
	}
	if err := writeFile(filepath.Join(target, "mine"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	if _, err := Create(t.Context(), o, goCode, Corbel{}, target, Toolchain{}); err == nil || !strings.Contains(err.Error(), "exists and is not empty") {
		t.Errorf("got %v", err)
	}
}

func TestTheSizeOfADefinitionIsThatOfItsJSON(t *testing.T) {
	folder := t.TempDir()
	text := "spec:\n  # a comment that is not sent\n  text: " + strings.Repeat("x", maxCRD) + "\n"
	if err := writeFile(filepath.Join(folder, "deploy", "files", "crd.yaml"), []byte(text)); err != nil {
		t.Fatal(err)
	}
	if size, err := crdSize(folder); err != nil || size != maxCRD+len(`{"spec":{"text":""}}`) {
		t.Errorf("got %d, %v", size, err)
	}
}

func TestAProjectFillsAnEmptyFolder(t *testing.T) {
	target, stage := t.TempDir(), t.TempDir()
	if err := writeFile(filepath.Join(stage, "api", "a.go"), []byte("x")); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(target)
	if err != nil {
		t.Fatal(err)
	}
	if err := move(stage, target); err != nil {
		t.Fatal(err)
	}
	after, err := os.Stat(target)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("it is another folder, %v", err)
	}
	if _, err := os.Stat(filepath.Join(target, "api", "a.go")); err != nil {
		t.Error(err)
	}
}

func TestAnUpdateTakesItsSourceFromOutside(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "shop-operator")
	o := Options{Name: "shop-operator", Module: "example.com/a", Kind: "Shop", Group: "shop.example.com", Version: "v1", Form: FormChart}
	if err := writeFile(filepath.Join(folder, "chart", "Chart.yaml"), []byte("name: a")); err != nil {
		t.Fatal(err)
	}
	if _, err := recordOf(o, folder); err != nil {
		t.Fatal(err)
	}
	for want, source := range map[string]Source{
		"is a part of the project":                       {FormChart, filepath.Join(folder, "chart")},
		"made from a source of the form chart, not yaml": {FormYAML, t.TempDir()},
	} {
		if _, err := Update(t.Context(), folder, source, Corbel{}, Toolchain{Go: "false"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	// Without a path it is what was taken over last, not what the author has made of it.
	if err := writeFile(filepath.Join(folder, "chart", "Chart.yaml"), []byte("name: edited")); err != nil {
		t.Fatal(err)
	}
	packed, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(baseFile)))
	if err != nil {
		t.Fatal(err)
	}
	base, err := unpackFiles(packed)
	if err != nil {
		t.Fatal(err)
	}
	stage := t.TempDir()
	if err := writeSource(o, base, stage); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(stage, "chart", "Chart.yaml")); err != nil || string(text) != "name: a" {
		t.Errorf("got %q, %v", text, err)
	}
}

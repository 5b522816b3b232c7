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
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/test/trap"
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

// Every one of them is an error that names the place; none ends the process.
func TestFoldersThatAreNone(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [x.yaml]", "a/x.yaml": configMap("x")}
	for root, want := range map[string]string{
		"../a": `folder "../a": it leads out of the root`, "/a": `folder "/a": it leads out of the root`, "a/../../b": `folder "../b": it leads out of the root`,
		"b": `folder "b": file does not exist`, "a/x.yaml": `folder "a/x.yaml": file does not exist`, "a\x00": "folder", "a\n": "folder",
	} {
		_, err := generate(t.Context(), files, root, kustomize.Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %q", root, err, want)
		}
	}
	if _, err := kustomize.New(nil, ".", kustomize.Options{}); err == nil || !strings.Contains(err.Error(), "the file system is nil") {
		t.Errorf("got the error %v", err)
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
	_, err = generate(t.Context(), map[string]string{".corbelignore": strings.Repeat("x\n", 1001), "a.yaml": configMap("a")}, ".", kustomize.Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 1000 rules") {
		t.Errorf("got the error %v", err)
	}
}

// badFolder is a folder that must end as an error. URL and FILE stand for the traps.
type badFolder struct {
	name    string
	files   map[string]string
	options kustomize.Options
	want    []string
}

func kustomization(name, text string, want ...string) badFolder {
	return badFolder{name: name, files: map[string]string{"kustomization.yaml": text, "a.yaml": configMap("a")}, want: append(want, "kustomization.yaml: ")}
}

func file(name, text string, want ...string) badFolder {
	return badFolder{name: name, files: map[string]string{"kustomization.yaml": "resources: [a.yaml]", "a.yaml": text}, want: want}
}

func plugin(name, transformer, text string, want ...string) badFolder {
	return badFolder{name: name, want: want, files: map[string]string{
		"kustomization.yaml": "resources: [a.yaml]\ntransformers: [" + transformer + "]", "a.yaml": configMap("a"), "t.yaml": text, "plugins/kustomization.yaml": "resources: [../t.yaml]",
	}}
}

func badFolders() []badFolder {
	const remote, outside, code = "it leads to another machine", "it leads out of the root", "only built-in generators, transformers and validators are run"
	const function = `['{apiVersion: v1, kind: Run, metadata: {name: r, annotations: {config.kubernetes.io/function: "exec: {path: /bin/sh}"}}}']`
	const container = `['{apiVersion: v1, kind: Run, metadata: {name: r, annotations: {config.kubernetes.io/function: "container: {image: x}"}}}']`
	decrypting := func(name string, d manifests.DecryptorFunc, want ...string) badFolder {
		b := file(name, configMap("a"), want...)
		b.options.Decryptor = d
		return b
	}
	return []badFolder{
		kustomization("Z01 a resource of another machine", "resources: [URL]", "resources[0]", remote),
		kustomization("Z01 a repository", "resources: ['git@example.com:a/b.git']", "resources[0]", remote),
		{name: "Z01 a resource of another machine in a folder below", files: map[string]string{"kustomization.yaml": "resources: [sub]", "sub/kustomization.yaml": "resources: [URL]"}, want: []string{"sub/kustomization.yaml: resources[0]: ", remote}},
		kustomization("Z01 a generator that loads data of another machine", "generators: ['{apiVersion: builtin, kind: ConfigMapGenerator, metadata: {name: x}, Files: [a=URL]}']", "generators[0].Files[0]: ", remote),
		plugin("Z01 a transformer that loads a patch of another machine", "t.yaml", "apiVersion: builtin\nkind: PatchTransformer\nmetadata: {name: x}\npath: URL\n", "t.yaml: document 1.path: ", remote),
		plugin("Z01 a transformer in a list in a folder", "plugins", "apiVersion: v1\nkind: List\nitems: [{apiVersion: builtin, kind: PatchStrategicMergeTransformer, metadata: {name: x}, paths: [URL]}]", "t.yaml: document 1.items[0].paths[0]: ", remote),
		kustomization("Z03 data of another machine", "configMapGenerator: [{name: a, files: ['m=URL']}]", "configMapGenerator[0].files[0]", remote),
		kustomization("Z03 data of the machine that we run on", "secretGenerator: [{name: a, files: ['m=http://169.254.169.254/latest']}]", "secretGenerator[0].files[0]", remote),
		kustomization("Z05 a generator that is a program", "generators: "+function, "generators[0]", code),
		kustomization("Z05 a transformer that is a container", "transformers: "+container, "transformers[0]", code),
		kustomization("Z05 a chart", "helmCharts: [{name: c, repo: 'https://example.com'}]", "helmCharts", code),
		kustomization("Z07 a file of the machine", "resources: ['FILE']", "resources[0]", outside),
		kustomization("Z07 data of the machine", "configMapGenerator: [{name: a, files: ['/var/run/secrets/token']}]", "configMapGenerator[0].files[0]", outside),
		kustomization("Z07 a file above the root", "configMapGenerator: [{name: a, files: ['../../var/run/secrets/token']}]", "configMapGenerator[0].files[0]", outside),
		{name: "Z07 the folder itself", files: map[string]string{"kustomization.yaml": "resources: ['.']"}, want: []string{"kustomization in folder .: ", "cycle detected"}},
		{name: "Z07 a folder as data", files: map[string]string{"kustomization.yaml": "configMapGenerator: [{name: a, files: ['.']}]"}, want: []string{"kustomization in folder .: ", "file sources", "open /: it is a folder"}},
		kustomization("Z13 a path with a zero byte", `resources: ["a\0b"]`, "resources[0]", "a path must not contain a zero byte"),
		{name: "Z15 an empty file of types", files: map[string]string{"kustomization.yaml": "resources: [a.yaml]\ncrds: [e.json]", "a.yaml": configMap("a"), "e.json": ""}, want: []string{"kustomization in folder .: panic"}},
		file("Z17 junk", "\x00\x01\xff", "a.yaml"),
		file("Z17 a tab", "a:\n\tb: 1\n", "a.yaml", "found character that cannot start any token"),
		{name: "Z17 nothing in a kustomization", files: map[string]string{"kustomization.yaml": ""}, want: []string{"kustomization.yaml is empty"}},
		decrypting("Z19 a wrong key", func([]byte, string) ([]byte, error) { return nil, errors.New("no key fits") }, "a.yaml: decrypt it: no key fits"),
		decrypting("Z19 a decryptor that panics", func([]byte, string) ([]byte, error) { panic("no way") }, "panicked: no way"),
		decrypting("Z19 what is decrypted is junk", func(_ []byte, name string) ([]byte, error) { return []byte("\tx: ["), nil }, "kustomization.yaml"),
		file("Z17 a text", "just a text", "a.yaml"),
		file("Z17 an object without a kind", "a: 1\n", "./a.yaml", "missing Resource metadata"),
		{name: "Z17 a kustomization as a resource", files: map[string]string{"kustomization.yaml": "resources: [sub/kustomization.yaml]", "sub/kustomization.yaml": "resources: [x.yaml]"}, want: []string{"sub/kustomization.yaml"}},
		{name: "Z17 an object twice", files: map[string]string{"kustomization.yaml": "resources: [a.yaml, b.yaml]", "a.yaml": configMap("a"), "b.yaml": configMap("a")}, want: []string{"./b.yaml", "ConfigMap.v1.[noGrp]/a"}},
		kustomization("Z21 an unknown field", "resource: [a.yaml]", `unknown field "resource"`),
		kustomization("Z21 a wrong type", "resources: a.yaml", "invalid Kustomization"),
		{name: "Z23 too many rules to ignore files", files: map[string]string{".corbelignore": strings.Repeat("x\n", 1001), "a.yaml": configMap("a")}, want: []string{"more than 1000 rules"}},
		{name: "Z25 a large file", files: map[string]string{"a.yaml": strings.Repeat("#", 50<<20)}, want: []string{"a.yaml: it is larger than 16777216 bytes"}},
		{name: "Z25 many files", files: many(5, 15<<20), want: []string{"too large together: more than 67108864 bytes"}},
		{name: "T01 an environment variable", files: map[string]string{"a.yaml": `{{ env "` + trap.Variable + `" }}`}, options: kustomize.Options{Templates: &kustomize.Templates{}}, want: []string{"a.yaml:1:3:", "env is not available"}},
		{name: "T13 loops in loops", files: map[string]string{"a.yaml": `{{ $l := until 100000 }}{{ range $l }}{{ range $l }}{{ end }}{{ end }}`},
			options: kustomize.Options{Templates: &kustomize.Templates{Options: gotemplate.Options{Timeout: 100 * time.Millisecond}}}, want: []string{"rendering was not done after"}},
	}
}

func many(n, size int) map[string]string {
	files := map[string]string{}
	for i := range n {
		files[fmt.Sprintf("%d.yaml", i)] = strings.Repeat("#", size)
	}
	return files
}

func TestBadKustomizationsAreOneClearErrorAndReachNothing(t *testing.T) {
	traps := trap.Set(t)
	for _, test := range badFolders() {
		t.Run(test.name, func(t *testing.T) {
			files := map[string]string{}
			for name, text := range test.files {
				files[name] = strings.ReplaceAll(strings.ReplaceAll(text, "URL", traps.URL), "FILE", traps.File)
			}
			objects, err := generate(t.Context(), files, ".", test.options, nil)
			if err == nil {
				t.Fatalf("got no error but %d objects", len(objects))
			}
			for _, want := range test.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("got the error %v, want it to contain %q", err, want)
				}
			}
			if len(err.Error()) > 1024 {
				t.Errorf("the message has %d bytes", len(err.Error()))
			}
			traps.Check(t, fmt.Sprint(objects), err.Error())
		})
	}
}

func TestFilesThatAreNoneAreRefused(t *testing.T) {
	for name, mode := range map[string]fs.FileMode{"Z07 a symbolic link": fs.ModeSymlink, "Z09 a pipe": fs.ModeNamedPipe, "Z09 a device": fs.ModeDevice} {
		t.Run(name, func(t *testing.T) {
			fsys := fstest.MapFS{"kustomization.yaml": {Data: []byte("resources: [p]")}, "p": {Mode: mode, Data: []byte("/etc/passwd")}}
			if _, err := kustomize.New(fsys, ".", kustomize.Options{}); err == nil || !strings.Contains(err.Error(), "want a regular file") && !strings.Contains(err.Error(), "p: it is no regular file") {
				t.Errorf("got the error %v", err)
			}
		})
	}
}

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

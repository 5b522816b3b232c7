// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/test/trap"
)

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

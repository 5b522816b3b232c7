// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/krm"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

// contract is a generator, and others that render something else.
type contract struct {
	same   func() manifests.Generator
	others map[string]func() manifests.Generator
}

// made panics if a generator cannot be made.
func made[G any](g G, err error) G {
	if err != nil {
		panic(err)
	}
	return g
}

// optionsOf adds a generator for each option.
func optionsOf[O any](t *testing.T, c contract, options O, values map[string]any, make func(O) manifests.Generator) contract {
	for name, changed := range manifeststest.EachOption(t, options, values) {
		c.others["option "+name] = func() manifests.Generator { return make(changed) }
	}
	return c
}

// filesOf is a file system with the times of files.
func filesOf(texts ...string) fs.FS {
	files := fstest.MapFS{}
	for i := 0; i < len(texts); i += 2 {
		files[texts[i]] = &fstest.MapFile{Data: []byte(texts[i+1]), ModTime: time.Now()}
	}
	return files
}

const (
	map1 = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	map2 = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b}\n"
)

// contracts are those of all generators and transformers.
func contracts(t *testing.T) map[string]contract {
	anew := func(build func() (manifests.Generator, error)) func() manifests.Generator {
		return func() manifests.Generator { return made(build()) }
	}
	files := func(name, text string, options ...manifests.FSOption) func() manifests.Generator {
		return anew(func() (manifests.Generator, error) { return manifests.FromFS(filesOf(name, text), ".", options...) })
	}
	plain := files("a.yaml", map1)
	transformed := func(transformers ...manifests.Transformer) func() manifests.Generator {
		return func() manifests.Generator { return manifests.Transform(plain(), transformers...) }
	}
	objects := func(o manifests.ObjectTransformer, err error) func() manifests.Generator {
		return transformed(manifests.WithObjectTransformer(made(o, err)))
	}
	parameters := func(p manifests.ParameterTransformer, err error) func() manifests.Generator {
		return transformed(manifests.WithParameterTransformer(made(p, err)))
	}
	script := func(text string) string {
		// Its path is another one in each process.
		path := filepath.Join(t.TempDir(), "function")
		check.NoError(t, os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755))
		return path
	}
	first, second := script("1"), script("2")
	ofCharts := map[string]any{"CRDs": helm.CRDsOnce, "KubeVersion": "1.33.1", "Timeout": time.Hour}
	functions := template.FuncMap{"own": func() string { return "" }}
	decryptor := manifests.DecryptorFunc(func(input []byte, _ string) ([]byte, error) { return input, nil })
	chartOf := func(files ...string) fs.FS {
		return filesOf(append([]string{"Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n"}, files...)...)
	}
	anotherChart := func(files ...string) func() manifests.Generator {
		return anew(func() (manifests.Generator, error) { return helm.New(chartOf(files...), ".", helm.Options{}) })
	}
	anotherTemplate := func(name, text string) func() manifests.Generator {
		return anew(func() (manifests.Generator, error) {
			return gotemplate.New(filesOf(name, text), ".", gotemplate.Options{})
		})
	}
	anotherFolder := func(root string, files ...string) func() manifests.Generator {
		return anew(func() (manifests.Generator, error) {
			return kustomize.New(filesOf(files...), root, kustomize.Options{})
		})
	}
	chart := func(o helm.Options) manifests.Generator {
		return made(helm.New(chartOf("templates/a.yaml", map1), ".", o))
	}
	templates := func(o gotemplate.Options) manifests.Generator {
		return made(gotemplate.New(filesOf("a.yaml", map1), ".", o))
	}
	kustomization := func(o kustomize.Options) manifests.Generator {
		return made(kustomize.New(filesOf("k/a.yaml", map1, "b.yaml", ""), "k", o))
	}
	function := func(f krm.Function) manifests.Generator { return made(krm.NewGenerator(f)) }
	patch := func(text string, t *v1alpha1.PatchTarget, images ...v1alpha1.Image) func() manifests.Generator {
		return objects(transform.Patches([]v1alpha1.Patch{{Patch: text, Target: t}}, images))
	}
	target := &v1alpha1.PatchTarget{Kind: "ConfigMap"}
	templateOptions := manifeststest.EachOption(t, gotemplate.Options{}, map[string]any{"Functions": functions, "Timeout": time.Hour})
	return map[string]contract{
		"helm": optionsOf(t, contract{func() manifests.Generator { return chart(helm.Options{}) }, map[string]func() manifests.Generator{
			"another file":  anotherChart("templates/a.yaml", map2),
			"one file more": anotherChart("templates/a.yaml", map1, "b", ""),
		}}, helm.Options{}, ofCharts, chart),
		"gotemplate": optionsOf(t, contract{func() manifests.Generator { return templates(gotemplate.Options{}) }, map[string]func() manifests.Generator{
			"another file": anotherTemplate("a.yaml", map2),
			"another name": anotherTemplate("b.yaml", map1),
			"another function": func() manifests.Generator {
				return templates(gotemplate.Options{Functions: template.FuncMap{"other": functions["own"]}})
			},
		}}, gotemplate.Options{}, map[string]any{"Functions": functions, "Timeout": time.Hour}, templates),
		"kustomize": optionsOf(t, contract{func() manifests.Generator { return kustomization(kustomize.Options{}) }, map[string]func() manifests.Generator{
			"another file":         anotherFolder("k", "k/a.yaml", map2, "b.yaml", ""),
			"another file outside": anotherFolder("k", "k/a.yaml", map1, "b.yaml", "1"),
			"another folder":       anotherFolder("l", "k/a.yaml", map1, "b.yaml", "", "l/a.yaml", map1),
			"a suffix": func() manifests.Generator {
				return kustomization(kustomize.Options{Templates: &kustomize.Templates{Suffix: "x"}})
			},
			"options of the templates": func() manifests.Generator {
				return kustomization(kustomize.Options{Templates: &kustomize.Templates{Options: gotemplate.Options{Strict: true}}})
			},
		}}, kustomize.Options{}, map[string]any{"Templates": &kustomize.Templates{}, "Decryptor": decryptor, "Timeout": time.Hour, "Limits.FileBytes": int64(1000)}, func(o kustomize.Options) manifests.Generator {
			o.Limits.TotalBytes, o.Limits.Values, o.Limits.OutputBytes = raised(o.Limits.TotalBytes), int(raised(int64(o.Limits.Values))), raised(o.Limits.OutputBytes)
			return kustomization(o)
		}),
		"krm": optionsOf(t, contract{func() manifests.Generator { return function(krm.Function{Path: script("1")}) }, map[string]func() manifests.Generator{}},
			krm.Function{Path: first}, map[string]any{"Path": second, "Environment": []string{"A=b"}, "Timeout": time.Hour}, function),
		"files": {plain, map[string]func() manifests.Generator{
			"another file":   files("a.yaml", map2),
			"another name":   files("b.yaml", map1),
			"Include":        files("a.yaml", map1, manifests.Include("a*")),
			"Exclude":        files("a.yaml", map1, manifests.Exclude("a*x")),
			"TopLevelOnly":   files("a.yaml", map1, manifests.TopLevelOnly()),
			"FollowSymlinks": files("a.yaml", map1, manifests.FollowSymlinks()),
			"MaxFileSize":    files("a.yaml", map1, manifests.MaxFileSize(1000)),
			"MaxTotalSize":   files("a.yaml", map1, manifests.MaxTotalSize(1000)),
		}},
		"Join": {func() manifests.Generator { return manifests.Join(plain(), chart(helm.Options{})) }, map[string]func() manifests.Generator{
			"another order":   func() manifests.Generator { return manifests.Join(chart(helm.Options{}), plain()) },
			"another content": func() manifests.Generator { return manifests.Join(plain(), templates(gotemplate.Options{})) },
			"one more":        func() manifests.Generator { return manifests.Join(plain(), chart(helm.Options{}), plain()) },
		}},
		"WithDigest": {func() manifests.Generator { return manifests.WithDigest(serving("x"), "1") }, map[string]func() manifests.Generator{
			"another digest":    func() manifests.Generator { return manifests.WithDigest(serving("x"), "2") },
			"another generator": func() manifests.Generator { return manifests.WithDigest(plain(), "1") },
		}},
		"Transform": {transformed(), map[string]func() manifests.Generator{
			"labels":            objects(transform.Labels(map[string]string{"a": "b"}), nil),
			"other labels":      objects(transform.Labels(map[string]string{"a": "c"}), nil),
			"annotations":       objects(transform.Annotations(map[string]string{"a": "b"}), nil),
			"a patch":           patch("{data: {a: b}}", target),
			"another patch":     patch("{data: {a: c}}", target),
			"another target":    patch("{data: {a: b}}", &v1alpha1.PatchTarget{Kind: "Secret"}),
			"an image":          patch("{data: {a: b}}", target, v1alpha1.Image{Name: "a", NewTag: "1"}),
			"another image":     patch("{data: {a: b}}", target, v1alpha1.Image{Name: "a", Digest: "1"}),
			"values":            objects(transform.Substitute(map[string]string{"A": "b", "C": "d"}, nil)),
			"other values":      objects(transform.Substitute(map[string]string{"A": "d", "C": "b"}, nil)),
			"values for a kind": objects(transform.Substitute(map[string]string{"A": "b", "C": "d"}, target)),
			"operations":        parameters(transform.JSONPatch("[{op: remove, path: /a}]")),
			"other operations":  parameters(transform.JSONPatch("[{op: remove, path: /b}]")),
			"an expression":     objects(transform.CEL("{'a': 1}", nil)),
			"of parameters":     parameters(transform.CEL("{'a': 2}", nil)),
			"for a kind":        objects(transform.CEL("{'a': 1}", target)),
			"a function":        objects(krm.NewTransformer(krm.Function{Path: first})),
			"another function":  objects(krm.NewTransformer(krm.Function{Path: second})),
			"a template":        parameters(gotemplate.NewParameters(filesOf("p.yaml", "a: b"), "p.yaml", gotemplate.Options{})),
			"another template":  parameters(gotemplate.NewParameters(filesOf("p.yaml", "a: c"), "p.yaml", gotemplate.Options{})),
			"a strict template": parameters(gotemplate.NewParameters(filesOf("p.yaml", "a: b"), "p.yaml", templateOptions["Strict"])),
			"its author's":      transformed(suffixing("x").WithDigest("1")),
			"its author's next": transformed(suffixing("x").WithDigest("2")),
			"several": transformed(manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "b"})),
				manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "c"}))),
			"in another order": transformed(manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "c"})),
				manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "b"}))),
		}},
	}
}

// raised keeps limits from failing.
func raised(limit int64) int64 {
	if limit > 0 {
		return limit + 1_000_000
	}
	return limit
}

func TestEachGeneratorHasADigest(t *testing.T) {
	for name, c := range contracts(t) {
		t.Run(name, func(t *testing.T) { manifeststest.Digest(t, c.same, c.others) })
	}
}

// digestsVariable lets the test print digests, for the process that started it.
const digestsVariable = "CORBEL_TEST_PRINT_DIGESTS"

func TestDigestsAreTheSameInEachProcess(t *testing.T) {
	sums := map[string]string{}
	for name, c := range contracts(t) {
		sums[name] = renders.Digest(c.same())
		for other, g := range c.others {
			sums[name+" "+other] = renders.Digest(g())
		}
	}
	if path := os.Getenv(digestsVariable); path != "" {
		check.NoError(t, os.WriteFile(path, made(json.Marshal(sums)), 0o600))
		return
	}
	path := filepath.Join(t.TempDir(), "digests")
	process := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	process.Env = append(os.Environ(), digestsVariable+"="+path)
	if output, err := process.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	theirs := map[string]string{}
	check.NoError(t, json.Unmarshal(made(os.ReadFile(path)), &theirs))
	if diff := cmp.Diff(sums, theirs); diff != "" {
		t.Errorf("-this process +another one:\n%s", diff)
	}
}

func TestWhatHasNoDigestIsNamed(t *testing.T) {
	plain, code := made(manifests.FromFS(filesOf("a.yaml", map1), ".")), serving("x")
	labels := manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "b"}))
	own := manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) { return objects, nil }))
	for name, test := range map[string]struct {
		g     manifests.Generator
		lacks bool
	}{
		"files":                         {plain, false},
		"code":                          {code, true},
		"code with a digest":            {manifests.WithDigest(code, "1"), false},
		"code with no digest after all": {manifests.WithDigest(code, ""), true},
		"a part of a join":              {manifests.Join(plain, code), true},
		"each part of a join":           {manifests.Join(plain, manifests.WithDigest(code, "1")), false},
		"a transformer":                 {manifests.Transform(plain, labels, own), true},
		"a transformer with a digest":   {manifests.Transform(plain, labels, own.WithDigest("1")), false},
		"all of it":                     {manifests.WithDigest(manifests.Transform(code, own), "1"), false},
		"nil":                           {nil, true},
	} {
		check.SameNamed(t, name, test.lacks, renders.LacksDigest(test.g))
	}
}

// The statuses of earlier builds have digests of charts without their options, and no others.
func TestEarlierDigests(t *testing.T) {
	files := filesOf("Chart.yaml", "apiVersion: v2\nname: a\nversion: 1.0.0\n", "templates/a.yaml", map1)
	chart, strange := made(helm.New(files, ".", helm.Options{})), made(helm.New(files, ".", helm.Options{ReleaseService: "x"}))
	const content = "PutDCMk2rCdWsbjElt1MZA" // if it changes, each component of each chart is rendered once more
	plain, own := made(manifests.FromFS(filesOf("a.yaml", map1), ".")), dated{digest: "a"}
	labels := manifests.WithObjectTransformer(transform.Labels(map[string]string{"a": "b"}))
	joined := renders.Digest(manifests.Join(chart, serving("x")))
	for name, test := range map[string]struct {
		g    manifests.Generator
		want string
		same bool // the digest is still that one
	}{
		"a chart":              {chart, content, true},
		"a chart with options": {strange, content, false},
		"files":                {plain, "", false},
		"an author's":          {own, "a", true},
		"transformed":          {manifests.Transform(strange, labels), content, false},
		"with a digest":        {manifests.WithDigest(strange, "1"), content, false},
		"joined charts":        {manifests.Join(chart, serving("x")), joined, true},
		"joined":               {manifests.Transform(manifests.Join(strange, plain), labels), joined, false},
		"isolated":             {manifests.Isolated(manifests.Transform(strange, labels), manifests.Isolation{Name: "earlier"}), content, false},
		"nothing":              {manifests.Join(plain, plain), "", false},
	} {
		got := renders.Digest(test.g)
		if before, _, _ := strings.Cut(got, "+"); before != test.want || (before == got) != test.same {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}

// dated is a generator that knows what it renders from.
type dated struct {
	manifests.GeneratorFunc
	digest string
}

func (d dated) Digest() string {
	if d.digest == "panic" {
		panic("no digest")
	}
	return d.digest
}

// described is a generator that reports what it renders from, and has one shared type.
type described struct {
	manifests.GeneratorFunc
	name, version string
}

func (d described) Source() v1alpha1.Source {
	if d.version == "panic" {
		panic("no source")
	}
	return v1alpha1.Source{Generator: "test", Version: d.version}
}

func (d described) SharedTypes() []types.SharedType {
	if d.version == "panic" {
		panic("no types")
	}
	if d.version == "rendered" {
		return []types.SharedType{{Name: d.name, Version: d.version}}
	}
	definition := &unstructured.Unstructured{Object: map[string]any{"kind": "CustomResourceDefinition", "metadata": map[string]any{"name": d.name}}}
	return []types.SharedType{{Name: d.name, Version: d.version, Definition: definition}}
}

func TestACompositionHasTheSourceAndTheSharedTypesOfItsGenerators(t *testing.T) {
	plain, a, b := serving("x"), described{name: "a", version: "1"}, described{name: "b", version: "2"}
	broken := described{version: "panic"}
	labelled := func(err error) manifests.Transformer {
		return manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(namespace, name string, objects []client.Object) ([]client.Object, error) {
			for _, object := range objects {
				object.SetLabels(map[string]string{"by": namespace + name + "us"})
			}
			return objects, err
		}))
	}
	numbered := manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(func(_, _ string, objects []client.Object) ([]client.Object, error) {
		objects[0].(*unstructured.Unstructured).Object["spec"] = map[string]any{"number": 1}
		return objects, nil
	}))
	for name, test := range map[string]struct {
		generator manifests.Generator
		source    string
		types     []string
	}{
		"itself":                     {a, "test 1", []string{"a 1 "}},
		"nil":                        {nil, " ", nil},
		"a function":                 {plain, " ", nil},
		"files":                      {made(manifests.FromFS(filesOf("a.yaml", map1), ".")), "files ", nil},
		"several":                    {manifests.Join(plain, a, b), "test 1", []string{"a 1 ", "b 2 "}},
		"none of more":               {manifests.Join(plain, plain), " ", nil},
		"the first of two":           {manifests.Join(a, described{name: "a", version: "3"}), "test 1", []string{"a 1 "}},
		"a panic":                    {broken, " ", nil},
		"a panic among more":         {manifests.Join(broken, b), "test 2", []string{"b 2 "}},
		"a transformer":              {manifests.Transform(a, labelled(nil)), "test 1", []string{"a 1 us"}},
		"a transformer that fails":   {manifests.Transform(a, labelled(errors.New("no"))), "test 1", nil},
		"a number that JSON has not": {manifests.Transform(a, numbered), "test 1", []string{"a 1 "}},
		"a definition that each component renders": {
			manifests.Transform(described{name: "a", version: "rendered"}, labelled(nil)), "test rendered", []string{"a rendered "},
		},
		"a transformer of parameters": {manifests.Transform(a, suffixing("x")), "test 1", []string{"a 1 "}},
		"isolation":                   {manifests.Isolated(a, manifests.Isolation{Name: "described"}), "test 1", []string{"a 1 "}},
	} {
		var got []string
		for _, shared := range renders.SharedTypes(test.generator) {
			text := shared.Name + " " + shared.Version + " "
			if shared.Definition != nil {
				text += shared.Definition.DeepCopy().GetLabels()["by"] // the copy would panic with an int
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(test.types, got); diff != "" {
			t.Errorf("%s: types (-want +got):\n%s", name, diff)
		}
		source := renders.Source(test.generator)
		if text := source.Generator + " " + source.Version; text != test.source || source != (v1alpha1.Source{Generator: source.Generator, Version: source.Version}) {
			t.Errorf("%s: source %+v, want %q", name, source, test.source)
		}
	}
}

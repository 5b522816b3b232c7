// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/manifests/manifeststest"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/check"
)

type generator = manifests.GeneratorFunc

// serving returns a generator of ConfigMaps with these names.
func serving(names ...string) manifests.Generator {
	return generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		var objects []client.Object
		for _, name := range names {
			objects = append(objects, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}})
		}
		return objects, nil
	})
}

func failing(message string) manifests.Generator {
	return generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return nil, errors.New(message)
	})
}

func namesOf(objects []client.Object) []string {
	var names []string
	for _, object := range objects {
		names = append(names, object.GetName())
	}
	return names
}

func returning(objects ...client.Object) manifests.Generator {
	return generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		return objects, nil
	})
}

// shared returns an object that is small in memory, but doubles with each level when it
// is encoded. Without levels it contains itself.
func shared(levels int) *unstructured.Unstructured {
	value := map[string]any{"text": strings.Repeat("x", 2000)}
	if levels == 0 {
		value["self"] = value
	}
	for range levels {
		value = map[string]any{"a": value, "b": value}
	}
	return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a"}, "data": value}}
}

// large returns a typed object with values that share their text.
func large() *corev1.ConfigMap {
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "b"}, Data: map[string]string{}}
	text := strings.Repeat("x", 1<<20)
	for i := range 300 {
		object.Data[strconv.Itoa(i)] = text
	}
	return object
}

type pointerGenerator struct{ field string }

func (p *pointerGenerator) Generate(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	return nil, errors.New(p.field)
}

type shopSpec struct{ Size string }

// wrapped is made as component.ParametersOf makes parameters.
type wrapped struct {
	types.UnstructurableMap
	spec any
}

func (w wrapped) Unwrap() any { return w.spec }

func (s *shopSpec) ToUnstructured() map[string]any { return nil }

func TestAFunctionGetsTheSpec(t *testing.T) {
	g := manifests.For(func(_ context.Context, namespace, name string, spec *shopSpec) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name + spec.Size}}}, nil
	})
	large := &shopSpec{Size: "-large"}
	for name, parameters := range map[string]types.Unstructurable{"a spec": large, "made of a spec": wrapped{spec: large}} {
		objects, err := manifests.Generate(t.Context(), g, "market", "corner", parameters)
		if err != nil || len(objects) != 1 || objects[0].GetNamespace() != "market" || objects[0].GetName() != "corner-large" {
			t.Errorf("%s: got %v, %v", name, objects, err)
		}
	}
	for want, parameters := range map[string]types.Unstructurable{
		"the parameters are a types.UnstructurableMap, want a *manifests_test.shopSpec": types.UnstructurableMap{},
		"the parameters are a manifests_test.shopSpec, want a *manifests_test.shopSpec": wrapped{spec: *large},
		"the parameters are a <nil>, want a *manifests_test.shopSpec":                   nil,
	} {
		if _, err := manifests.Generate(t.Context(), g, "market", "corner", parameters); err == nil || err.Error() != want {
			t.Errorf("got the error %v, want %q", err, want)
		}
	}
	if err := renders.Validate(manifests.For[*shopSpec](nil)); !errors.Is(err, renders.ErrNilGenerator) {
		t.Errorf("a nil function gives the mistake %v", err)
	}
}

func TestGenerateConvertsMistakesToErrors(t *testing.T) {
	parameters := func(f manifests.ParameterTransformerFunc) manifests.Transformer {
		return manifests.WithParameterTransformer(f)
	}
	objects := func(f manifests.ObjectTransformerFunc) manifests.Transformer {
		return manifests.WithObjectTransformer(f)
	}
	by := func(transformer manifests.Transformer) manifests.Generator {
		return manifests.Transform(serving("a"), suffixing(""), transformer)
	}
	for _, test := range []struct {
		name string
		g    manifests.Generator
		want string
	}{
		{"nil", nil, "the generator is nil"},
		{"a nil function", generator(nil), "the generator is nil"},
		{"a nil pointer", (*pointerGenerator)(nil), "the generator is nil"},
		{"an error", failing("broken"), "broken"},
		{"a panic", generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			panic("no way")
		}), "panicked: no way"},
		{"nil objects", generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return []client.Object{nil, &corev1.Secret{}, (*corev1.ConfigMap)(nil)}, nil
		}), "object 1 of 3 is nil (<nil>)\nobject 3 of 3 is nil (*v1.ConfigMap)"},
		{"too many objects", generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			objects := make([]client.Object, 100_001)
			for i := range objects {
				objects[i] = &corev1.ConfigMap{}
			}
			return objects, nil
		}), "there are 100001 objects; at most 100000 are accepted"},
		{"an object that shares its parts", returning(shared(40)), "object 1 of 1 (*unstructured.Unstructured a) has more than 268435456 bytes, or is nested deeper than 500 levels"},
		{"an object that contains itself", returning(shared(0)), "object 1 of 1 (*unstructured.Unstructured a) has more than 268435456 bytes, or is nested deeper"},
		{"objects that share their parts", manifests.Join(returning(shared(15)), returning(slices.Repeat([]client.Object{shared(15)}, 20)...)), "the 21 objects have more than 268435456 bytes together"},
		{"a large typed object", returning(&corev1.ConfigMap{Data: map[string]string{"a": strings.Repeat("x", 1<<20)}}, large()), "object 2 of 2 (*v1.ConfigMap b) has more than 268435456 bytes"},
		{"inside of Join", manifests.Join(serving("a"), nil, failing("broken")), "generator 2 of 3: the generator is nil\ngenerator 3 of 3: broken"},
		{"inside of Transform", manifests.Transform(nil), "the generator is nil"},
		{"too much for a transformer", manifests.Transform(returning(shared(40)), objects(func(_, _ string, _ []client.Object) ([]client.Object, error) {
			panic("it was called")
		})), "transformer 1 of 1: object 1 of 1 (*unstructured.Unstructured a) has more than 268435456 bytes"},
		{"no transformer", by(manifests.Transformer{}), "transformer 2 of 2 is nil"},
		{"a transformer that is a nil function", by(parameters(nil)), "transformer 2 of 2 is nil"},
		{"nil parameters", by(parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { return nil, nil })), "transformer 2 of 2: it returned nil parameters"},
		{"an error before", by(parameters(func(_, _ string, p types.Unstructurable) (types.Unstructurable, error) {
			return p, errors.New("broken")
		})), "transformer 2 of 2: broken"},
		{"a panic before", by(parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { panic("no") })), "transformer 2 of 2: panicked: no"},
		{"a nil object", by(objects(func(_, _ string, o []client.Object) ([]client.Object, error) { return append(o, nil), nil })), "transformer 2 of 2: object 2 of 2 is nil"},
		{"an error after", by(objects(func(string, string, []client.Object) ([]client.Object, error) { return nil, errors.New("broken") })), "transformer 2 of 2: broken"},
		{"a panic after", by(objects(func(string, string, []client.Object) ([]client.Object, error) { panic("no") })), "transformer 2 of 2: panicked: no"},
	} {
		t.Run(test.name, func(t *testing.T) {
			objects, err := manifests.Generate(t.Context(), test.g, "ns", "name", nil)
			if err == nil || objects != nil {
				t.Fatalf("got %v, %v, want an error", objects, err)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("got the error %q, want it to contain %q", err, test.want)
			}
		})
	}
}

func TestJoinKeepsTheOrder(t *testing.T) {
	objects := check.Must(manifests.Join(serving("b", "a"), manifests.Join(), manifests.Join(serving("d"), serving("c"))).Generate(t.Context(), "", "", nil))(t)
	check.Equal(t, []string{"b", "a", "d", "c"}, namesOf(objects))
}

func TestValidateLooksInside(t *testing.T) {
	if err := renders.Validate(manifests.Join(serving(), manifests.Transform(serving()))); err != nil {
		t.Error(err)
	}
	err := renders.Validate(manifests.Join(serving(), manifests.Transform(manifests.Join(nil), manifests.WithObjectTransformer(nil), manifests.Transformer{})))
	want := "generator 2 of 2: generator 1 of 1: the generator is nil\ntransformer 1 of 2 is nil\ntransformer 2 of 2 is nil"
	if err == nil || err.Error() != want {
		t.Errorf("got the error %v", err)
	}
	if err := renders.Validate(nil); err == nil {
		t.Error("nil is no valid generator")
	}
}

type schemeGenerator struct {
	manifests.Generator
	err error
}

func (s schemeGenerator) AddToScheme(scheme *apiruntime.Scheme) error {
	return errors.Join(s.err, corev1.AddToScheme(scheme))
}

func TestAddToSchemeIsForwarded(t *testing.T) {
	scheme := apiruntime.NewScheme()
	g := manifests.Transform(manifests.Join(serving(), schemeGenerator{Generator: serving()}))
	check.NoError(t, renders.AddToScheme(g, scheme))
	if !scheme.Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
		t.Error("the scheme does not know pods")
	}
	if err := renders.AddToScheme(serving(), scheme); err != nil {
		t.Errorf("a generator without types: %v", err)
	}
	err := renders.AddToScheme(manifests.Join(schemeGenerator{err: errors.New("broken")}, nil), scheme)
	check.Fails(t, err, "generator 1 of 2: broken", "generator 2 of 2: the generator is nil")
}

func adding(key, value string) manifests.Transformer {
	return manifests.WithParameterTransformer(manifests.ParameterTransformerFunc(
		func(namespace, name string, p types.Unstructurable) (types.Unstructurable, error) {
			changed := maps.Clone(p.ToUnstructured())
			changed[key] = value + namespace + name
			return types.UnstructurableMap(changed), nil
		}))
}

func suffixing(suffix string) manifests.Transformer {
	return manifests.WithObjectTransformer(manifests.ObjectTransformerFunc(
		func(namespace, name string, objects []client.Object) ([]client.Object, error) {
			for _, object := range objects {
				object.SetName(object.GetName() + suffix + namespace + name)
			}
			return objects, nil
		}))
}

func TestTransformRunsInOrder(t *testing.T) {
	parameters := types.UnstructurableMap{"x": "0"}
	g := generator(func(_ context.Context, _, _ string, p types.Unstructurable) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: p.ToUnstructured()["x"].(string)}}}, nil
	})
	objects := check.Must(manifests.Transform(g, suffixing("a"), adding("x", "1"), suffixing("b"), adding("x", "2")).Generate(t.Context(), "N", "M", parameters))(t)
	check.Equal(t, []string{"2NMaNMbNM"}, namesOf(objects))
	check.SameNamed(t, "the parameters were changed", "0", parameters["x"])
}

// Generators that are isolated render in this program, started once more.
func TestMain(m *testing.M) {
	manifests.RunIsolated()
	os.Exit(m.Run())
}

// With the race detector it also shows that renderings share nothing they change.
func TestRenderingsAtTheSameTimeDoNotSeeEachOther(t *testing.T) {
	const defaults = "name: x\nm: {k: v}\n"
	action := resulting(`{{ $_ := set .Values "name" (print .Values.name .Release.Name) }}{{ $_ := set .Values.m "k" .Release.Name }}{{ toJson .Values }}`)
	for name, test := range map[string]struct {
		generator  manifests.Generator
		parameters types.UnstructurableMap
	}{
		"T39 templates": {made(gotemplate.New(filesOf("a.yaml", action), ".", gotemplate.Options{})), types.UnstructurableMap{"name": "x", "m": map[string]any{"k": "v"}}},
		"T39 a chart":   {made(helm.New(filesOf("Chart.yaml", chartFile, "values.yaml", defaults, "templates/a.yaml", action), ".", helm.Options{})), nil},
	} {
		t.Run(name, func(t *testing.T) {
			var group sync.WaitGroup
			for i := range 8 {
				group.Go(func() {
					app := fmt.Sprint("app", i)
					objects, err := manifests.Generate(t.Context(), test.generator, "ns", app, test.parameters)
					if err != nil {
						t.Error(err)
						return
					}
					got, _, _ := unstructured.NestedString(objects[0].(*unstructured.Unstructured).Object, "data", "v")
					check.Same(t, fmt.Sprintf(`{"m":{"k":%q},"name":"x%s"}`, app, app), got)
				})
			}
			group.Wait()
		})
	}
}

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
	for _, test := range []struct {
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
	} {
		t.Run(test.name, func(t *testing.T) {
			g := check.Must(manifests.FromFS(fsys, test.root, test.options...))(t)
			objects := check.Must(manifests.Generate(t.Context(), g, "", "", nil))(t)
			check.Equal(t, test.want, namesOf(objects))
		})
	}
}

func TestFromFSServesCopies(t *testing.T) {
	g := check.Must(manifests.FromFS(folder(map[string]string{"a.yaml": configMap + "data:\n  k: v\n"}), "."))(t)
	c := manifeststest.Case{Generator: g}
	check.Same(t, "v", c.Render(t)[0].Object["data"].(map[string]any)["k"])
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
	check.Equal(t, want, strings.Split(err.Error(), "\n"))
	if _, again := manifests.Generate(t.Context(), g, "", "", nil); again == nil || again.Error() != err.Error() {
		t.Errorf("the generator returns the error %v", again)
	}
}

func TestFromFSRefusesFolders(t *testing.T) {
	fsys := folder(map[string]string{"m/a.yaml": configMap, "m/b.yaml": configMap, "n/readme": ""})
	small := manifests.MaxFileSize(int64(len(configMap) - 1))
	for _, test := range []struct {
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
	} {
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
		check.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	check.NoError(t, os.Symlink("..data.yaml", filepath.Join(dir, "a.yaml")))
	check.Fails(t, check.ErrorOf(manifests.FromFS(os.DirFS(dir), ".")), "a.yaml: it is a symbolic link")
	root := check.Must(os.OpenRoot(dir))(t)
	defer root.Close()
	g := check.Must(manifests.FromFS(root.FS(), ".", manifests.FollowSymlinks()))(t)
	objects, err := g.Generate(t.Context(), "", "", nil)
	if diff := cmp.Diff([]string{"hidden"}, namesOf(objects)); err != nil || diff != "" {
		t.Errorf("error %v, -want +got:\n%s", err, diff)
	}
	check.NoError(t, os.Symlink(outside, filepath.Join(dir, "b.yaml")))
	if _, err := manifests.FromFS(root.FS(), ".", manifests.FollowSymlinks()); err == nil {
		t.Error("a link that leads out of the root was followed")
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
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

func TestGenerateConvertsMistakesToErrors(t *testing.T) {
	tests := []struct {
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
		{"a runtime error", generator(func(_ context.Context, _, _ string, parameters types.Unstructurable) ([]client.Object, error) {
			parameters.ToUnstructured()["a"] = 1
			return nil, nil
		}), "panicked: runtime error: invalid memory address"},
		{"nil objects", generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			return []client.Object{nil, &corev1.Secret{}, (*corev1.ConfigMap)(nil)}, nil
		}), "object 1 of 3 is nil (<nil>)\nobject 3 of 3 is nil (*v1.ConfigMap)"},
		{"an error that is a nil pointer", generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
			var err *document.DecodeError
			return nil, err
		}), "returned an error of type *document.DecodeError that is a nil pointer"},
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
	}
	for _, test := range tests {
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

func TestPanicsKeepTheirStack(t *testing.T) {
	cause := errors.New("cause")
	_, err := manifests.Generate(t.Context(), generator(func(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
		panic(cause)
	}), "", "", nil)
	var p *types.PanicError
	if !errors.As(err, &p) || !strings.Contains(string(p.Stack), "TestPanicsKeepTheirStack") || errors.Is(err, cause) {
		t.Errorf("got %#v", err)
	}
	if strings.Contains(err.Error(), "goroutine") {
		t.Errorf("the message holds the stack: %s", err)
	}
}

func TestJoinKeepsTheOrder(t *testing.T) {
	objects, err := manifests.Join(serving("b", "a"), manifests.Join(), manifests.Join(serving("d"), serving("c"))).Generate(t.Context(), "", "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"b", "a", "d", "c"}, namesOf(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
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
	if err := renders.AddToScheme(g, scheme); err != nil {
		t.Fatal(err)
	}
	if !scheme.Recognizes(corev1.SchemeGroupVersion.WithKind("Pod")) {
		t.Error("the scheme does not know pods")
	}
	if err := renders.AddToScheme(serving(), scheme); err != nil {
		t.Errorf("a generator without types: %v", err)
	}
	err := renders.AddToScheme(manifests.Join(schemeGenerator{err: errors.New("broken")}, nil), scheme)
	if err == nil || !strings.Contains(err.Error(), "generator 1 of 2: broken") || !strings.Contains(err.Error(), "generator 2 of 2: the generator is nil") {
		t.Errorf("got the error %v", err)
	}
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
	objects, err := manifests.Transform(g, suffixing("a"), adding("x", "1"), suffixing("b"), adding("x", "2")).Generate(t.Context(), "N", "M", parameters)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"2NMaNMbNM"}, namesOf(objects)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if parameters["x"] != "0" {
		t.Error("the parameters were changed")
	}
}

func TestTransformReportsItsTransformers(t *testing.T) {
	parameters := func(f manifests.ParameterTransformerFunc) manifests.Transformer {
		return manifests.WithParameterTransformer(f)
	}
	objects := func(f manifests.ObjectTransformerFunc) manifests.Transformer {
		return manifests.WithObjectTransformer(f)
	}
	tests := []struct {
		name        string
		transformer manifests.Transformer
		want        string
	}{
		{"none", manifests.Transformer{}, "transformer 2 of 2 is nil"},
		{"a nil function", parameters(nil), "transformer 2 of 2 is nil"},
		{"nil parameters", parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { return nil, nil }), "transformer 2 of 2: it returned nil parameters"},
		{"an error before", parameters(func(_, _ string, p types.Unstructurable) (types.Unstructurable, error) {
			return p, errors.New("broken")
		}), "transformer 2 of 2: broken"},
		{"a panic before", parameters(func(string, string, types.Unstructurable) (types.Unstructurable, error) { panic("no") }), "transformer 2 of 2: panicked: no"},
		{"a nil object", objects(func(_, _ string, o []client.Object) ([]client.Object, error) { return append(o, nil), nil }), "transformer 2 of 2: object 2 of 2 is nil"},
		{"an error after", objects(func(string, string, []client.Object) ([]client.Object, error) { return nil, errors.New("broken") }), "transformer 2 of 2: broken"},
		{"a panic after", objects(func(string, string, []client.Object) ([]client.Object, error) { panic("no") }), "transformer 2 of 2: panicked: no"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := manifests.Transform(serving("a"), suffixing(""), test.transformer).Generate(t.Context(), "", "", types.UnstructurableMap{})
			if err == nil || got != nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v and the error %v, want it to contain %q", got, err, test.want)
			}
		})
	}
}

func TestATransformerDoesNotGetWhatIsTooMuch(t *testing.T) {
	g := manifests.Transform(returning(shared(40)), manifests.WithObjectTransformer(
		manifests.ObjectTransformerFunc(func(_, _ string, _ []client.Object) ([]client.Object, error) { panic("it was called") })))
	_, err := manifests.Generate(t.Context(), g, "ns", "app", nil)
	if err == nil || !strings.Contains(err.Error(), "transformer 1 of 1: object 1 of 1 (*unstructured.Unstructured a) has more than 268435456 bytes") {
		t.Errorf("got the error %v", err)
	}
}

// Generators that are isolated render in this program, started once more.
func TestMain(m *testing.M) {
	manifests.RunIsolated()
	os.Exit(m.Run())
}

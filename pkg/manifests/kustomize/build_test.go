// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

func TestWhatIsBuiltEqualsWhatTheLibraryBuildsOnDisk(t *testing.T) {
	folders := foldersIn(t, "testdata/parity")
	if len(folders) < 20 {
		t.Errorf("only %d kustomizations to compare", len(folders))
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			want := must(onDisk(filepath.Join("testdata/parity", folder)))(t)
			got := must(inMemory(treeOf(t, "testdata/parity"), folder))(t)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-on disk +in memory:\n%s", diff)
			}
		})
	}
}

// foldersIn returns the folders with a kustomization, relative to the root.
func foldersIn(t *testing.T, root string) []string {
	t.Helper()
	var folders []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		for _, known := range konfig.RecognizedKustomizationFileNames() {
			if err == nil && !entry.IsDir() && entry.Name() == known {
				folders = append(folders, path.Dir(name))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func treeOf(t *testing.T, root string) *tree {
	t.Helper()
	osRoot := must(os.OpenRoot(root))(t)
	defer func() { _ = osRoot.Close() }()
	all, err := readTree(osRoot.FS(), Options{FollowSymlinks: true, Limits: Limits{TotalBytes: 1 << 30}})
	if err != nil {
		t.Log(err)
	}
	return all
}

func inMemory(all *tree, folder string) ([]*unstructured.Unstructured, error) {
	limits := Options{}.complete().Limits
	plan, err := check(all, folder, limits)
	if err != nil {
		return nil, err
	}
	built, _, err := build(context.Background(), plan, limits)
	return built, err
}

// onDisk returns what the YAML that the library builds is for a client.
func onDisk(folder string) (built []*unstructured.Unstructured, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	defer openapi.ResetOpenAPI()
	resources, err := krusty.MakeKustomizer(krustyOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	data, err := resources.AsYaml()
	if err != nil {
		return nil, err
	}
	return document.Decode(folder, data)
}

var sample = fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {size: '{{ .Values.size }}'}\n")}}

func TestTheSameIsNotBuiltTwice(t *testing.T) {
	g := must(New(sample, ".", Options{Templates: &Templates{}}))(t)
	generate := func(size int) string {
		objects := must(manifests.Generate(t.Context(), g, "", "", types.UnstructurableMap{"size": size}))(t)
		return objects[0].GetName() + objects[0].GetLabels()["size"]
	}
	generate(1)
	// A result with this name comes from the cache.
	key := cache.KeyOf(map[string]string{"a.yaml": strings.ReplaceAll(string(sample["a.yaml"].Data), "{{ .Values.size }}", "1")})
	built, ok := g.(*generator).results.Get(key)
	if !ok {
		t.Fatal("nothing was kept")
	}
	built[0].SetName("kept")
	if got := generate(1); got != "kept1" {
		t.Errorf("got %s, it was built again", got)
	}
	for size := range maxResults {
		if got := generate(size + 2); got != fmt.Sprintf("a%d", size+2) {
			t.Errorf("got %s", got)
		}
	}
	if got := generate(1); got != "a1" {
		t.Errorf("got %s, more than %d results are kept", got, maxResults)
	}
}

// The library would write these as YAML that others read as something else.
func TestTextsAndNumbersStayWhatTheyAre(t *testing.T) {
	build := func(number string) (map[string]any, error) {
		built, err := inMemory(newTree(map[string][]byte{
			"kustomization.yaml": []byte("resources: [a.yaml]\ncommonAnnotations: {release: 123e456}\n"),
			"a.yaml":             []byte("apiVersion: example.com/v1\nkind: A\nmetadata: {name: a}\nspec: {number: " + number + "}\n"),
		}), ".")
		if err != nil {
			return nil, err
		}
		return built[0].Object, nil
	}
	got, err := build("9223372036854775807")
	want := map[string]any{
		"apiVersion": "example.com/v1", "kind": "A", "spec": map[string]any{"number": int64(9223372036854775807)},
		"metadata": map[string]any{"name": "a", "annotations": map[string]any{"release": "123e456"}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v, -want +got:\n%s", err, diff)
	}
	if _, err := build("9223372036854775808"); err == nil || !strings.Contains(err.Error(), "A.v1.example.com/a.[noNs]: the number is out of range") {
		t.Errorf("got the error %v", err)
	}
}

func TestABuildThatDoesNotEndIsAbandoned(t *testing.T) {
	release := make(chan struct{})
	options := Options{Timeout: 50 * time.Millisecond, Templates: &Templates{Options: gotemplate.Options{
		Functions: template.FuncMap{"hang": func() string { <-release; return "" }},
	}}}
	g := must(New(fstest.MapFS{"a.yaml": {Data: []byte("{{ hang }}")}}, ".", options))(t)
	for _, busy := range []bool{false, true} {
		_, err := manifests.Generate(t.Context(), g, "", "", nil)
		var late *timeout.Error
		if !errors.As(err, &late) || busy != late.Busy {
			t.Errorf("got the error %v, want busy: %t", err, busy)
		}
	}
	close(release)
}

func TestABuildThatWaitsForTheSchemaHoldsUpNoOthers(t *testing.T) {
	hanging := must(acquireSchema(t.Context(), false))(t)
	ctx, cancel := context.WithCancel(t.Context())
	waiting := make(chan error, 1)
	go func() {
		_, err := acquireSchema(ctx, true)
		waiting <- err
	}()
	limited, stop := context.WithTimeout(t.Context(), 2*time.Minute)
	defer stop()
	for range 20 {
		share := must(acquireSchema(limited, false))(t)
		schema.Release(share)
		select {
		case err := <-waiting:
			t.Fatalf("it got the schema although another build is under way: %v", err)
		case <-time.After(schemaPoll / 4):
		}
	}
	cancel()
	if err := <-waiting; !errors.Is(err, context.Canceled) {
		t.Errorf("got the error %v", err)
	}
	schema.Release(hanging)
	share := must(acquireSchema(limited, true))(t)
	schema.Release(share)
}

// must returns the value of a call, or fails the test.
func must[V any](value V, err error) func(testing.TB) V {
	return func(t testing.TB) V {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

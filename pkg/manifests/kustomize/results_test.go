// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
	"github.com/corbel-run/corbel/pkg/types"
)

var sample = fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  labels: {size: '{{ .Values.size }}'}\n")}}

func TestTheSameIsNotBuiltTwice(t *testing.T) {
	g, err := New(sample, ".", Options{Templates: &Templates{}})
	if err != nil {
		t.Fatal(err)
	}
	generate := func(size int) string {
		objects, err := manifests.Generate(t.Context(), g, "", "", types.UnstructurableMap{"size": size})
		if err != nil {
			t.Fatal(err)
		}
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
	g, err := New(fstest.MapFS{"a.yaml": {Data: []byte("{{ hang }}")}}, ".", options)
	if err != nil {
		t.Fatal(err)
	}
	for _, busy := range []bool{false, true} {
		_, err := manifests.Generate(t.Context(), g, "", "", nil)
		var late *timeout.Error
		if !errors.As(err, &late) || busy != late.Busy {
			t.Errorf("got the error %v, want busy: %t", err, busy)
		}
	}
	close(release)
}

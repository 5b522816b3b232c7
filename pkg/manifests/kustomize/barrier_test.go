// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/types"

	"github.com/corbel-run/corbel/test/trap"
)

// kind says what a field of a kustomization holds.
type kind int

const (
	plain   kind = iota // no path
	located             // a path, or something that might be one
	refused             // whatever it holds
)

// fields are all fields of a kustomization that can hold a text, in the form in which
// leaves finds them. A field that a newer version of the library brings is not among
// them, and fails the test until it is classified here.
var fields = map[string]kind{
	"resources[]": located, "bases[]": located, "components[]": located, "crds[]": located, "configurations[]": located,
	"generators[]": located, "transformers[]": located, "validators[]": located, "openapi{}": located, "patchesStrategicMerge[]": located,
	"patches[].path": located, "patchesJson6902[].path": located, "replacements[].path": located,
	"configMapGenerator[].files[]": located, "configMapGenerator[].envs[]": located, "configMapGenerator[].env": located,
	"secretGenerator[].files[]": located, "secretGenerator[].envs[]": located, "secretGenerator[].env": located,
}

// others are the prefixes of fields that hold no path, or that are refused.
var others = map[string]kind{
	"apiVersion": plain, "kind": plain, "metadata.": plain, "namePrefix": plain, "nameSuffix": plain, "namespace": plain, "buildMetadata[]": plain,
	"commonLabels{}": plain, "commonAnnotations{}": plain, "labels[].": plain, "images[].": plain, "imageTags[].": plain, "replicas[].": plain,
	"vars[].": plain, "sortOptions.": plain, "generatorOptions.": plain,
	"patches[].patch": plain, "patches[].target.": plain, "patchesJson6902[].patch": plain, "patchesJson6902[].target.": plain,
	"replacements[].source.": plain, "replacements[].sourceValue": plain, "replacements[].targets[].": plain,
	"configMapGenerator[].namespace": plain, "configMapGenerator[].name": plain, "configMapGenerator[].behavior": plain, "configMapGenerator[].literals[]": plain, "configMapGenerator[].options.": plain,
	"secretGenerator[].namespace": plain, "secretGenerator[].name": plain, "secretGenerator[].behavior": plain, "secretGenerator[].literals[]": plain, "secretGenerator[].options.": plain, "secretGenerator[].type": plain,
	"helmGlobals.": plain, "helmCharts[].": refused, "helmChartInflationGenerator[].": refused,
}

func kindOf(field string) (kind, bool) {
	if k, ok := fields[field]; ok {
		return k, true
	}
	for prefix, k := range others {
		if strings.HasPrefix(field, prefix) {
			return k, true
		}
	}
	return plain, false
}

// leaves returns the fields of a type that can hold a text.
func leaves(t reflect.Type, name string) []string {
	switch t.Kind() {
	case reflect.Pointer:
		return leaves(t.Elem(), name)
	case reflect.Slice, reflect.Array:
		return leaves(t.Elem(), name+"[]")
	case reflect.Map:
		return leaves(t.Elem(), name+"{}")
	case reflect.String, reflect.Interface:
		return []string{name}
	case reflect.Struct:
		var found []string
		for field := range t.Fields() {
			tag, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			switch {
			case !field.IsExported() || tag == "-":
			case field.Anonymous && tag == "":
				found = append(found, leaves(field.Type, name)...)
			default:
				found = append(found, leaves(field.Type, strings.TrimPrefix(name+"."+tag, "."))...)
			}
		}
		return found
	}
	return nil
}

// holding returns a kustomization in which the field has the value.
func holding(t *testing.T, field, value string) []byte {
	t.Helper()
	var content any = value
	segments := strings.Split(field, ".")
	for _, segment := range slices.Backward(segments) {
		name, list := strings.CutSuffix(segment, "[]")
		name, inMap := strings.CutSuffix(name, "{}")
		if item, ok := content.(map[string]any); ok && list {
			// Without them the library gets no further.
			for key, value := range needed[name] {
				if item[key] == nil {
					item[key] = value
				}
			}
		}
		if list {
			content = []any{content}
		}
		if inMap {
			content = map[string]any{"path": content}
		}
		content = map[string]any{name: content}
	}
	data := must(json.Marshal(content))(t)
	return data
}

var needed = map[string]map[string]any{
	"configMapGenerator": {"name": "a"}, "secretGenerator": {"name": "a"}, "patchesJson6902": {"target": map[string]any{"kind": "ConfigMap", "name": "a", "version": "v1"}},
}

// remotes are values that lead to other machines.
func remotes(traps *trap.Traps) []string {
	return []string{
		traps.URL, strings.Replace(traps.URL, "http", "HTTP", 1), "https://192.0.2.1/x", "https://github.com/org/repo//path?ref=v1", "http://192.0.2.1/repo.git",
		"github.com/org/repo", "GitHub.com/org/repo//x", "github.com:org/repo.git", "git@github.com:org/repo.git", "git@example.com:org/repo//x", "ssh://git@example.com/org/repo",
		"git::https://example.com/org/repo", "GIT::git::https://example.com/org/repo", "file:///etc", "file://" + traps.File, "org-1@example.com/a/b", "https://user@dev.azure.com/org/project/_git/repo",
	}
}

func TestEveryFieldOfAKustomizationIsClassified(t *testing.T) {
	found := leaves(reflect.TypeFor[types.Kustomization](), "")
	if len(found) < 60 {
		t.Fatalf("only %d fields were found: %v", len(found), found)
	}
	for _, field := range found {
		if _, ok := kindOf(field); !ok {
			t.Errorf("the field %s is not classified: say in the table whether it can hold a path", field)
		}
	}
	for field := range fields {
		if !slices.Contains(found, field) {
			t.Errorf("there is no field %s any more", field)
		}
	}
}

// cloned are the fields in which the library clones a repository.
var cloned = map[string]bool{"resources[0]": true, "bases[0]": true, "components[0]": true, "generators[0]": true, "transformers[0]": true, "validators[0]": true}

func TestNoFieldOfAKustomizationReachesAnotherMachine(t *testing.T) {
	traps := trap.Set(t)
	for _, field := range leaves(reflect.TypeFor[types.Kustomization](), "") {
		class, _ := kindOf(field)
		name := strings.NewReplacer("[]", "[0]", "{}", ".path").Replace(field)
		if class == refused {
			name, _, _ = strings.Cut(name, "[")
		}
		t.Run(field, func(t *testing.T) {
			for _, value := range remotes(traps) {
				data := holding(t, field, value)
				got, err := inMemory(newTree(map[string][]byte{"kustomization.yaml": data}), ".")
				switch {
				case class == plain: // whatever comes of it
				case err == nil || !strings.Contains(err.Error(), "kustomization.yaml: "+name):
					t.Errorf("%s: got the error %v", data, err)
				case class == located && (isURL(value) || cloned[name]) && !errors.Is(err, errRemote):
					t.Errorf("%s: got the error %v", data, err)
				}
				traps.Check(t, asJSON(t, got), fmt.Sprint(err))
			}
		})
	}
}

func asJSON(t *testing.T, objects []*unstructured.Unstructured) string {
	t.Helper()
	data := must(json.Marshal(objects))(t)
	return string(data)
}

// What the look at the fields would let pass is not fetched either.
func TestAnApprovedKustomizationReachesNoOtherMachine(t *testing.T) {
	traps := trap.Set(t)
	t.Setenv("TMPDIR", t.TempDir()) // where the library puts what it starts to clone
	for _, field := range slices.Sorted(maps.Keys(fields)) {
		t.Run(field, func(t *testing.T) {
			reached := false
			for _, value := range remotes(traps) {
				data := holding(t, field, value)
				tree := newTree(map[string][]byte{"kustomization.yaml": data})
				c := &checker{tree: tree, approved: map[string][]byte{}}
				k := &types.Kustomization{}
				if err := k.Unmarshal(data); err != nil {
					t.Fatal(err)
				}
				c.approve(fieldRef{file: "kustomization.yaml", folder: "."}, k)
				got, _, err := build(context.Background(), &checkedBuild{files: checkedFiles{tree: tree, kustomizations: c.approved}, folder: "."}, Limits{OutputBytes: 1 << 20})
				traps.Check(t, asJSON(t, got), fmt.Sprint(err))
				// Without the barrier something would be reached: else this test shows nothing.
				_, _, _ = build(context.Background(), &checkedBuild{files: checkedFiles{tree: tree, kustomizations: tree.files}, folder: "."}, Limits{OutputBytes: 1 << 20})
				reached = len(traps.Caught()) > 0 || reached
			}
			if !reached {
				t.Error("also without the barrier nothing was reached")
			}
		})
	}
}

func TestKustomizationsThatWereNotLookedAtAreNotBuilt(t *testing.T) {
	tree := newTree(map[string][]byte{"kustomization.yaml": []byte("resources: [sub]"), "sub/kustomization.yaml": []byte("namePrefix: x-")})
	approved := map[string][]byte{"kustomization.yaml": []byte("resources: [./sub]")}
	_, _, err := build(context.Background(), &checkedBuild{files: checkedFiles{tree: tree, kustomizations: approved}, folder: "."}, Limits{})
	if err == nil || !strings.Contains(err.Error(), "unable to find one of 'kustomization.yaml'") {
		t.Errorf("got the error %v", err)
	}
}

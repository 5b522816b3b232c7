// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/corbel-run/corbel/pkg/component/internal/references"
)

// maze is a spec with references wherever they can be.
type maze struct {
	ClientSpec `json:",inline"`
	inner      `json:",inline"`
	*Cellar    `json:",inline"`

	Direct  SecretReference            `json:"direct"`
	Pointer *ConfigMapReference        `json:"pointer,omitempty"`
	Slice   []SecretKeyReference       `json:"slice,omitempty" fallbackKeys:"a, b"`
	Deep    [][]*ConfigMapKeyReference `json:"deep,omitempty"`
	Map     map[string]SecretReference `json:"map,omitempty"`
	Rooms   map[string]map[string]room `json:"rooms,omitempty"`
	Any     any                        `json:"any,omitempty"`
	Renamed room                       `json:"another,omitempty"`
	NoTag   SecretReference
	Self    *maze                 `json:"self,omitempty"`
	Raw     *runtime.RawExtension `json:"raw,omitempty"`
	Free    *apiextensionsv1.JSON `json:"free,omitempty"`
	Time    *metav1.Time          `json:"time,omitempty"`
	Func    func()                `json:"-"`
	Hidden  SecretReference       `json:"-"`
	private SecretReference
}

type inner struct {
	Embedded SecretReference `json:"embedded"`
}

// Cellar is embedded as a pointer.
type Cellar struct {
	Below *SecretReference `json:"below,omitempty"`
}

type room struct {
	Ref *SecretReference `json:"ref,omitempty"`
	Val SecretReference  `json:"val"`
}

func pathsIn(spec any) []string {
	found, _ := finderFor[*widget]().Find(spec)
	var paths []string
	for _, reference := range found {
		paths = append(paths, reference.Path)
	}
	return paths
}

func TestReferencesAreFoundWhereverTheyAre(t *testing.T) {
	spec := &maze{
		ClientSpec: ClientSpec{KubeConfig: &KubeConfigSpec{}},
		Cellar:     &Cellar{Below: &SecretReference{}},
		Pointer:    &ConfigMapReference{},
		Slice:      make([]SecretKeyReference, 2),
		Deep:       [][]*ConfigMapKeyReference{nil, {nil, {}}},
		Map:        map[string]SecretReference{"k": {}},
		Rooms:      map[string]map[string]room{"x": {"y": {Ref: &SecretReference{}}, "z": {}}},
		Any:        []any{map[string]any{"in": SecretReference{}, "text": "x", "nothing": nil}, &SecretReference{}},
		Self:       &maze{},
		private:    SecretReference{},
	}
	spec.Raw, spec.Free, spec.Time = &runtime.RawExtension{Raw: []byte("{}")}, &apiextensionsv1.JSON{Raw: []byte("{}")}, new(metav1.Now())
	want := []string{
		"spec.NoTag", "spec.another.val", "spec.any[0][in]", "spec.any[1]", "spec.below", "spec.deep[1][1]", "spec.direct",
		"spec.embedded", "spec.kubeConfig.secretRef", "spec.map[k]", "spec.pointer", "spec.rooms[x][y].ref", "spec.rooms[x][y].val",
		"spec.rooms[x][z].val", "spec.self.NoTag", "spec.self.another.val", "spec.self.direct", "spec.self.embedded",
		"spec.slice[0]", "spec.slice[1]",
	}
	if diff := cmp.Diff(want, pathsIn(spec)); diff != "" {
		t.Errorf("references (-want +got):\n%s", diff)
	}
}

func TestSpecsWithoutReferences(t *testing.T) {
	var none *maze
	for _, spec := range []any{nil, none, &Cellar{}, struct{}{}, map[string]any{"a": []any{1, nil}}, 7, "text"} {
		if paths := pathsIn(spec); len(paths) > 0 {
			t.Errorf("%v: found %v", spec, paths)
		}
	}
}

func TestASpecThatHoldsItselfIsSearchedToAnEnd(t *testing.T) {
	spec := &maze{}
	spec.Self = spec
	if paths := pathsIn(spec); !slices.Contains(paths, "spec.direct") {
		t.Errorf("found %v", paths)
	}
}

func TestWhatIsLoadedStaysInMapsAndInterfaces(t *testing.T) {
	spec := &maze{
		Map:   map[string]SecretReference{"k": {}},
		Rooms: map[string]map[string]room{"x": {"z": {}}},
		Any:   map[string]any{"in": SecretReference{}},
	}
	found, keep := finderFor[*widget]().Find(spec)
	for _, reference := range found {
		sourceOf(reference.Pointer).Accept(references.Content{"a": []byte("1")})
	}
	keep()
	inMap, inRoom, inAny := spec.Map["k"], spec.Rooms["x"]["z"].Val, spec.Any.(map[string]any)["in"].(SecretReference)
	for where, reference := range map[string]*SecretReference{"map": &inMap, "room": &inRoom, "any": &inAny, "field": &spec.Direct} {
		if string(reference.Data()["a"]) != "1" {
			t.Errorf("%s: holds %v", where, reference.Data())
		}
	}
}

func TestTagsOfReferences(t *testing.T) {
	spec := &maze{ClientSpec: ClientSpec{KubeConfig: &KubeConfigSpec{}}, Slice: make([]SecretKeyReference, 1)}
	found, _ := finderFor[*widget]().Find(spec)
	for _, reference := range found {
		var keys []string
		special := false
		switch reference.Path {
		case "spec.slice[0]":
			keys = []string{"a", "b"}
		case "spec.kubeConfig.secretRef":
			keys, special = []string{"value", "value.yaml", "value.yml"}, true
		}
		if diff := cmp.Diff(keys, reference.FallbackKeys()); diff != "" || reference.WaitOnDeletion() != special || reference.IgnoredByDigest() != special {
			t.Errorf("%s: waits %v, ignored %v, keys (-want +got):\n%s", reference.Path, reference.WaitOnDeletion(), reference.IgnoredByDigest(), diff)
		}
	}
}

func TestMistakesInTheTypeOfTheSpec(t *testing.T) {
	type bad struct {
		A SecretReference    `json:"a" notFoundPolicy:"never"`
		B SecretKeyReference `json:"b" fallbackKeys:"ok,a/b" digest:"no"`
	}
	f := finderFor[*widget]()
	checkMistakes(t, f.Check(&bad{}), `field A of the spec: tag notFoundPolicy is "never", must be ignoreOnDeletion or waitOnDeletion|`+
		`field B of the spec: tag fallbackKeys has the key "a/b"|field B of the spec: tag digest is "no", must be ignore`)
	checkMistakes(t, f.Check(maze{}), "GetSpec must return a pointer, because the spec can hold a component.")
	for _, good := range []any{&maze{}, struct{ A any }{}, map[string]any{}} {
		if err := f.Check(good); err != nil {
			t.Errorf("%T: %v", good, err)
		}
	}
}

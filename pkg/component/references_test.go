// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/guard"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component/internal/references"
)

func secretObject(name string, data map[string][]byte) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func configMapObject(name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name}, Data: data}
}

func withRefs(refs widgetReferences) *widget { return withSpec(widgetSpec{Refs: &refs}) }

func deleted(w *widget) *widget {
	w.DeletionTimestamp, w.Finalizers = new(metav1.Now()), []string{"test.corbel.run"}
	return w
}

func notFound(name string) error {
	return apierrors.NewNotFound(schema.GroupResource{Resource: "databases"}, name)
}

// own is a reference of the author that loads a text, or fails.
func own(text string, err error) *ownReference {
	return &ownReference{Name: "x", load: func(*widget) (string, error) { return text, err }}
}

func TestReferencesAreLoaded(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.local = fake.NewFakeClient(
		secretObject("creds", map[string][]byte{"token": []byte("t"), "other": []byte("o")}), secretObject("empty", nil),
		configMapObject("settings", map[string]string{"a": "1"}), configMapObject("texts", map[string]string{"hello": "hi", "bye": ""}))
	obj := withRefs(widgetReferences{
		Password: &SecretKeyReference{Name: "creds"},
		Settings: &ConfigMapReference{Name: "settings"},
		Secrets:  []SecretReference{{Name: "creds"}, {Name: "empty"}},
		Texts:    map[string]ConfigMapKeyReference{"x": {Name: "texts", Key: "hello"}, "y": {Name: "texts", Key: "bye"}},
		Own:      own("loaded", nil),
	})
	check(t, h.loadReferences(t.Context(), obj).Err())
	refs := obj.Spec.Refs
	if got := string(refs.Password.Value()); got != "t" {
		t.Errorf("the password is %q", got)
	}
	if diff := cmp.Diff(map[string]string{"a": "1"}, refs.Settings.Data()); diff != "" {
		t.Errorf("settings (-want +got):\n%s", diff)
	}
	if len(refs.Secrets[0].Data()) != 2 || refs.Secrets[1].Data() == nil || len(refs.Secrets[1].Data()) != 0 {
		t.Errorf("the secrets hold %v", refs.Secrets)
	}
	x, y := refs.Texts["x"], refs.Texts["y"]
	if x.Value() != "hi" || y.loaded == nil || y.Value() != "" || refs.Own.loaded != "loaded" {
		t.Errorf("texts %q and %q, own %q", x.Value(), y.Value(), refs.Own.loaded)
	}
}

func TestAReferenceThatIsNotLoadedIsEmpty(t *testing.T) {
	var nothing widgetReferences
	if (&SecretReference{}).Data() != nil || (&SecretKeyReference{}).Value() != nil || (&ConfigMapReference{}).Data() != nil ||
		(&ConfigMapKeyReference{}).Value() != "" || nothing.Password.Value() != nil || nothing.Settings.Data() != nil {
		t.Error("there is something in a reference that is not loaded")
	}
}

func TestAbsentReferences(t *testing.T) {
	deny := errors.New("no rights")
	tests := []struct {
		name            string
		component       *widget
		missing, failed string
	}{
		{name: "a config map", component: withRefs(widgetReferences{Settings: &ConfigMapReference{Name: "x"}}),
			missing: "spec.refs.settings: ConfigMap shop/x does not exist"},
		{name: "a key", component: withRefs(widgetReferences{Password: &SecretKeyReference{Name: "creds", Key: "password"}}),
			missing: "spec.refs.password: Secret shop/creds has no key password"},
		{name: "all fallback keys", component: withRefs(widgetReferences{Password: &SecretKeyReference{Name: "creds"}}),
			missing: "spec.refs.password: Secret shop/creds has none of the keys password, token"},
		{name: "all that is missing is named", component: withRefs(widgetReferences{
			Secrets: []SecretReference{{Name: "x"}, {Name: "creds"}, {Name: "y"}}, Own: own("", notFound("db")),
		}), missing: "spec.refs.secrets[0]: Secret shop/x does not exist\nspec.refs.secrets[2]: Secret shop/y does not exist\n" +
			`spec.refs.own: databases "db" not found`},
		{name: "what cannot be read is not missing", component: withRefs(widgetReferences{
			Secrets: []SecretReference{{Name: "x"}}, Own: own("", deny),
		}), missing: "spec.refs.secrets[0]: Secret shop/x does not exist", failed: "spec.refs.own: no rights"},
		{name: "in deletion nothing is missing", component: deleted(withRefs(widgetReferences{
			Secrets: []SecretReference{{Name: "x"}, {Name: "a/b"}}, Password: &SecretKeyReference{Name: "creds"}, Own: own("", notFound("db")),
		}))},
		{name: "but the kubeconfig is", component: deleted(withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{SecretKeyReference{Name: "creds"}}}})),
			missing: "spec.kubeConfig.secretRef: Secret shop/creds has none of the keys value, value.yaml, value.yml"},
		{name: "also by a mistake", component: deleted(withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{SecretKeyReference{Name: "a/b"}}}})),
			missing: `spec.kubeConfig.secretRef: Secret "a/b"`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			h.local = fake.NewFakeClient(secretObject("creds", map[string][]byte{"Password": nil}))
			absent := h.loadReferences(t.Context(), test.component)
			for _, part := range []struct {
				what string
				got  error
				want string
			}{{"missing", errors.Join(absent.Missing...), test.missing}, {"failed", errors.Join(absent.Failed...), test.failed}} {
				if part.want == "" && part.got != nil {
					t.Errorf("%s: %v", part.what, part.got)
				} else if part.want != "" {
					checkMistakes(t, part.got, part.want)
				}
			}
		})
	}
}

func TestMissingReferencesAreWaitedFor(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	h.local = fake.NewFakeClient()
	obj := withRefs(widgetReferences{Secrets: []SecretReference{{Name: "x"}, {Name: "y"}}})
	verdict := reconcileOnce(t, h, obj)
	state, reason, message := obj.GetStatus().GetState()
	if state != v1alpha1.StatePending || reason != vocabulary.ReasonRetrying || verdict.Result.RequeueAfter != references.RetryInterval || len(engine.applied) > 0 {
		t.Errorf("%s, %s: %s; %+v", state, reason, message, verdict)
	}
	checkMistakes(t, errors.New(message), "Secret shop/x does not exist|Secret shop/y does not exist")

	obj.Spec.Refs.Own = own("", errors.New("no rights"))
	if reconcileOnce(t, h, obj); obj.GetStatus().State != v1alpha1.StateError {
		t.Errorf("what cannot be read is hidden by what is missing: %s", obj.GetStatus().State)
	}
}

func TestMistakesInReferences(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	obj := withRefs(widgetReferences{
		Secrets:  []SecretReference{{}, {Name: "other/creds"}},
		Password: &SecretKeyReference{Name: "creds", Key: "a/b"},
		Texts:    map[string]ConfigMapKeyReference{"x": {Name: "texts"}},
	})
	reconcileOnce(t, h, obj)
	_, reason, message := obj.GetStatus().GetState()
	if reason != vocabulary.ReasonSpecInvalid || len(engine.applied) > 0 {
		t.Errorf("the reason is %s, and the engine is called %d times", reason, len(engine.applied))
	}
	checkMistakes(t, errors.New(message), `Widget shop/main: |`+
		`spec.refs.secrets[0]: the name of the Secret is missing|spec.refs.secrets[1]: Secret "other/creds": |`+
		`spec.refs.password: key "a/b" in Secret creds: |spec.refs.texts[x]: the key in ConfigMap texts is missing`)

	clusterScoped := withRefs(widgetReferences{Secrets: []SecretReference{{Name: "x"}}})
	clusterScoped.Namespace = ""
	reconcileOnce(t, h, clusterScoped)
	_, _, message = clusterScoped.GetStatus().GetState()
	checkMistakes(t, errors.New(message), "Widget main: spec.refs.secrets[0]: a component without a namespace cannot refer to a Secret")
}

func TestReferencesOfTheAuthorAreContained(t *testing.T) {
	tests := []struct {
		name string
		load func(*widget) (string, error)
		err  string
	}{
		{"a panic", func(*widget) (string, error) { panic("oh") }, "loading references: panicked: oh"},
		{"a change of the spec", func(w *widget) (string, error) { w.Spec.Size++; return "", nil }, "loading references: changed the spec of the component"},
		{"no end", func(*widget) (string, error) { select {} }, "loading references: did not return within"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			h, _ := testHandler(t, &fakeEngine{})
			if test.name == "no end" {
				h.code.loadTimeout, h.code.guard = 10*time.Millisecond, guard.New(0)
			}
			obj := withRefs(widgetReferences{Own: &ownReference{load: test.load}})
			checkMistakes(t, h.loadReferences(t.Context(), obj).Err(), test.err)
			if obj.Spec.Size != 0 {
				t.Error("the spec was changed")
			}
		})
	}
}

func TestEachObjectIsReadOnce(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	counting := &countingClient{Client: fake.NewFakeClient(secretObject("creds", map[string][]byte{"token": []byte("t")}))}
	h.local = counting
	obj := withRefs(widgetReferences{Password: &SecretKeyReference{Name: "creds"}, Secrets: []SecretReference{{Name: "creds"}, {Name: "creds"}}})
	if err := h.loadReferences(t.Context(), obj).Err(); err != nil || counting.gets != 1 {
		t.Errorf("%d reads, %v", counting.gets, err)
	}
}

func TestADeletionWaitsForItsKubeconfigOnlyIfItHasSomethingToLose(t *testing.T) {
	h, _ := testHandler(t, &fakeEngine{})
	h.local = fake.NewFakeClient()
	obj := deleted(withSpec(widgetSpec{ClientSpec: ClientSpec{&KubeConfigSpec{SecretKeyReference{Name: "gone"}}}}))
	obj.GetStatus().Inventory = someInventory
	reconcileOnce(t, h, obj)
	if _, reason, message := obj.GetStatus().GetState(); reason != vocabulary.ReasonDeletionBlocked {
		t.Errorf("%s: %s", reason, message)
	} else {
		checkMistakes(t, errors.New(message), "Secret shop/gone does not exist")
	}
	obj.GetStatus().Inventory = v1alpha1.Inventory{}
	reconcileOnce(t, h, obj)
	if _, reason, message := obj.GetStatus().GetState(); reason != vocabulary.ReasonDeletionProcessing || message != "nothing is left" {
		t.Errorf("without dependents: %s: %s", reason, message)
	}
}

func TestADeletionWaitsForAReferenceThatCannotBeReadAndNamesIt(t *testing.T) {
	engine := &fakeEngine{}
	h, _ := testHandler(t, engine)
	denied := apierrors.NewForbidden(schema.GroupResource{Resource: "secrets"}, "creds", errors.New("no"))
	h.local = interceptor.NewClient(fake.NewClientBuilder().WithObjects(secretObject("creds", map[string][]byte{"token": []byte("t")})).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if denied != nil && key.Name == "creds" {
				return denied
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
	var seen []string
	h.code.hooks[preDelete] = hooksOf(func(_ context.Context, _ client.Client, w *widget) error {
		seen = append(seen, string(w.Spec.Refs.Password.Value()))
		return nil
	})
	obj := deleted(withRefs(widgetReferences{Password: &SecretKeyReference{Name: "creds"}}))
	obj.Status.Inventory = someInventory
	reconcileOnce(t, h, obj)
	state, reason, message := obj.GetStatus().GetState()
	if state != v1alpha1.StateDeleting || reason != vocabulary.ReasonDeletionBlocked || len(engine.deleted)+len(seen) > 0 {
		t.Errorf("%s, %s; %d deletions, hooks %q", state, reason, len(engine.deleted), seen)
	}
	checkMistakes(t, errors.New(message), "Widget shop/main: |spec.refs.password: read Secret shop/creds: |forbidden|test.corbel.run/abandon")
	denied = nil
	if reconcileOnce(t, h, obj); len(engine.deleted) != 1 || !slices.Equal(seen, []string{"t"}) {
		t.Errorf("%d deletions, hooks %q", len(engine.deleted), seen)
	}
}

// countingClient counts reads of single objects.
type countingClient struct {
	client.Client
	gets int
}

func (c *countingClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	c.gets++
	return c.Client.Get(ctx, key, obj, options...)
}

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
		Self:       &maze{},
		private:    SecretReference{},
	}
	spec.Raw, spec.Free, spec.Time = &runtime.RawExtension{Raw: []byte("{}")}, &apiextensionsv1.JSON{Raw: []byte("{}")}, new(metav1.Now())
	want := []string{
		"spec.NoTag", "spec.another.val", "spec.below", "spec.deep[1][1]", "spec.direct",
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

func TestWhatIsLoadedStaysInMaps(t *testing.T) {
	spec := &maze{
		Map:   map[string]SecretReference{"k": {}},
		Rooms: map[string]map[string]room{"x": {"z": {}}},
	}
	found, keep := finderFor[*widget]().Find(spec)
	for _, reference := range found {
		*sourceOf(reference.Pointer).Loaded = map[string][]byte{"a": []byte("1")}
	}
	keep()
	inMap, inRoom := spec.Map["k"], spec.Rooms["x"]["z"].Val
	for where, reference := range map[string]*SecretReference{"map": &inMap, "room": &inRoom, "field": &spec.Direct} {
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
	checkMistakes(t, f.Check(&struct{ A fmt.Stringer }{}), "field A of the spec is the interface fmt.Stringer: references are not found in interfaces")
	checkMistakes(t, f.Check(&bad{}), `field A of the spec: tag notFoundPolicy is "never", must be ignoreOnDeletion or waitOnDeletion|`+
		`field B of the spec: tag fallbackKeys has the key "a/b"|field B of the spec: tag digest is "no", must be ignore`)
	checkMistakes(t, f.Check(maze{}), "GetSpec must return a pointer, because the spec can hold a component.")
	for _, good := range []any{&maze{}, struct{ A any }{}, map[string]any{}} {
		if err := f.Check(good); err != nil {
			t.Errorf("%T: %v", good, err)
		}
	}
}

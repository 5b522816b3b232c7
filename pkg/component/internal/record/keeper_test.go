// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package record

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/inventory"
	"github.com/corbel-run/corbel/pkg/component/internal/identity"
)

var widgetKind = schema.GroupVersionKind{Group: "test.corbel.run", Version: "v1", Kind: "Widget"}

func newKeeper(c client.Client) *Keeper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{widgetKind.GroupVersion()})
	mapper.Add(widgetKind, meta.RESTScopeNamespace)
	return &Keeper{
		Self: &identity.Operator{Name: "test.corbel.run", Kind: widgetKind}, Local: c, Mapper: mapper,
		Store: inventory.NewStore(inventory.Options{Client: c, Name: "test.corbel.run", FieldOwner: "test", Namespace: "operator"}),
	}
}

// leftovers are the Secrets of components that do not exist any more.
type leftovers struct {
	*testing.T
	*Keeper
	started time.Time
	listed  []time.Duration // when the Secrets were listed
	refused func() error    // to list them
	refuse  func() error    // to change one
}

func newLeftovers(t *testing.T) *leftovers {
	t.Helper()
	l := &leftovers{T: t, started: time.Now(), refuse: func() error { return nil }, refused: func() error { return nil }}
	// With every write the client looks through all types of the scheme, so it has few.
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	local := interceptor.NewClient(fake.NewClientBuilder().WithScheme(scheme).Build(), interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if _, ok := obj.(*metav1.PartialObjectMetadata); ok && key.Namespace == "" {
				return apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{Resource: "widgets"}, key.Name, "404 page not found", 0, true)
			} else if ok {
				return apierrors.NewNotFound(schema.GroupResource{Group: widgetKind.Group, Resource: "widgets"}, key.Name)
			}
			return c.Get(ctx, key, obj, options...)
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			if _, ok := list.(*metav1.PartialObjectMetadataList); ok {
				l.listed = append(l.listed, time.Since(l.started))
				if err := l.refused(); err != nil {
					return err
				}
			}
			return c.List(ctx, list, options...)
		},
		Patch: func(ctx context.Context, c client.WithWatch, obj client.Object, patch client.Patch, options ...client.PatchOption) error {
			if err := l.refuse(); err != nil {
				return err
			}
			return c.Patch(ctx, obj, patch, options...)
		},
	})
	l.Keeper = newKeeper(local)
	l.spill("shop", "first")
	return l
}

// spill makes the Secrets of a component, and deletes them.
func (l *leftovers) spill(namespace, name string) {
	l.Helper()
	apiVersion, kind := l.Self.Kind.ToAPIVersionAndKind()
	maker := inventory.NewStore(inventory.Options{Client: l.Local, Name: "test.corbel.run", FieldOwner: "test", Namespace: "shop", Threshold: 1})
	snapshot, err := maker.Open(l.Context(), inventory.Component{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}, v1alpha1.Inventory{})
	if err != nil {
		l.Fatal(err)
	}
	inventory := v1alpha1.Inventory{Items: []v1alpha1.InventoryItem{{Version: "v1", Kind: "ConfigMap", Namespace: "shop", Name: "a"}}}
	if err := snapshot.Save(l.Context(), inventory, func(context.Context, v1alpha1.Inventory) error { return nil }); err != nil {
		l.Fatal(err)
	}
	for _, secret := range l.secrets() {
		if err := l.Local.Delete(l.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: secret}}); err != nil {
			l.Fatal(err)
		}
	}
}

// secrets are the names of all that are left.
func (l *leftovers) secrets() []string {
	l.Helper()
	list := &corev1.SecretList{}
	if err := l.Local.List(l.Context(), list); err != nil {
		l.Fatal(err)
	}
	var names []string
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	return names
}

// lateMapper knows no type before a time.
type lateMapper struct {
	meta.RESTMapper
	from time.Time
}

func (m lateMapper) RESTMapping(gk schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	if time.Now().Before(m.from) {
		return nil, &meta.NoKindMatchError{GroupKind: gk, SearchedVersions: versions}
	}
	return m.RESTMapper.RESTMapping(gk, versions...)
}

func TestWhetherOrphansAreLookedForAgain(t *testing.T) {
	secrets := schema.GroupResource{Resource: "secrets"}
	again := []time.Duration{0, 5 * time.Second, 15 * time.Second, 35 * time.Second} // less and less often
	for name, tc := range map[string]struct {
		list, patch error // the answers before the fourth attempt
		unknown     bool
		attempts    []time.Duration
	}{
		"nothing is wrong":                     {attempts: again[:1]},
		"Secrets must not be listed":           {list: apierrors.NewForbidden(secrets, "", nil), attempts: again[:1]},
		"the server is down":                   {list: apierrors.NewServiceUnavailable("later"), attempts: again},
		"one must not be changed":              {patch: apierrors.NewForbidden(secrets, "first", nil), attempts: again[:1]},
		"one cannot be changed":                {patch: apierrors.NewInternalError(errors.New("a webhook")), attempts: again},
		"the type is not known for the moment": {unknown: true, attempts: []time.Duration{75 * time.Second}},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLeftovers(t)
				attempt := func(err error) error {
					if len(l.listed) == len(again) {
						return nil
					}
					return err
				}
				l.refused = func() error { return attempt(tc.list) }
				l.refuse = func() error { return attempt(tc.patch) }
				if tc.unknown {
					l.Mapper = lateMapper{l.Mapper, l.started.Add(time.Minute)}
				}
				var lines []string
				log := funcr.New(func(_, line string) { lines = append(lines, line) }, funcr.Options{})
				if err := l.CleanUpOrphans(logf.IntoContext(t.Context(), log)); err != nil {
					t.Error(err)
				}
				if tc.unknown && (len(lines) != 1 || !strings.HasPrefix(lines[0], `"level"=0`)) {
					t.Errorf("got %q, want one line that is no error", lines)
				}
				if diff := cmp.Diff(tc.attempts, l.listed); diff != "" {
					t.Errorf("attempts (-want +got):\n%s", diff)
				}
				denied := apierrors.IsForbidden(tc.list) || apierrors.IsForbidden(tc.patch)
				if left := l.secrets(); (len(left) > 0) != denied {
					t.Errorf("left: %v", left)
				}
			})
		})
	}
}

// What is answered decides about the removal of an inventory.
func TestAComponentIsGoneOnlyIfTheServerNamesIt(t *testing.T) {
	resource := schema.GroupResource{Group: widgetKind.Group, Resource: "widgets"}
	for name, tc := range map[string]struct {
		answer error
		want   inventory.State
	}{
		"it does not exist":                   {apierrors.NewNotFound(resource, "main"), inventory.StateGone},
		"its path is not served for a moment": {apierrors.NewGenericServerResponse(http.StatusNotFound, "get", resource, "main", "404 page not found", 0, true), ""},
		"another one does not exist":          {apierrors.NewNotFound(resource, "other"), ""},
		"the server is down":                  {apierrors.NewServiceUnavailable("later"), ""},
	} {
		k := newKeeper(interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
			Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
				return tc.answer
			},
		}))
		state, err := k.stateOf(t.Context(), inventory.Component{Kind: widgetKind.Kind, Namespace: "shop", Name: "main", UID: "1"})
		if state != tc.want || (err == nil) != (tc.want == inventory.StateGone) {
			t.Errorf("%s: got %q, %v", name, state, err)
		}
	}
}

// A type that was taken from the server is not asked for every few seconds for ever.
func TestTheFateOfAComponentIsReadLessAndLessOften(t *testing.T) {
	k := newKeeper(nil)
	var waits []time.Duration
	k.RequestFast = func(_ client.ObjectKey, after time.Duration) { waits = append(waits, after) }
	key := client.ObjectKey{Namespace: "shop", Name: "main"}
	fails := func(err error) { k.RetryForget(t.Context(), key, err) }
	for range 9 {
		fails(errors.New("its path is not served"))
	}
	k.Forget(t.Context(), key) // nothing is left of it
	fails(errors.New("another one of its name"))
	want := []time.Duration{5, 10, 20, 40, 80, 160, 320, 600, 600, 5}
	for i := range want {
		want[i] *= time.Second
	}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits (-want +got):\n%s", diff)
	}
}

// Every saved inventory has a format.
func TestAnEmptyInventoryHasAFormat(t *testing.T) {
	if got := (&Record{}).signed(v1alpha1.Inventory{}); got.Format != v1alpha1.InventoryFormat || got.Operator != nil {
		t.Errorf("%+v", got)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/test/wire"
)

const secondName = "second.corbel.run"

// second returns a bed of the same component for an operator of another name.
func (b *bed) second(options component.ReconcilerOptions, wrap func(http.RoundTripper) http.RoundTripper) *bed {
	b.Helper()
	second := *b
	second.user += "-second"
	second.reconciler = component.NewReconciler[*widget.Widget](secondName, manifests.GeneratorFunc(configMaps), options)
	smallStatus(&second)
	b.check(second.reconciler.SetupWithManager(newManager(b.T, b.env, second.user, wrap)))
	second.resetRequests()
	return &second
}

func TestAnOperatorOfAnotherNameLeavesAClaimedComponentAlone(t *testing.T) {
	shared := "widgets.corbel.run/finalizer"
	for name, test := range map[string]struct {
		first, second component.ReconcilerOptions
	}{
		"with finalizers of their own": {},
		"with one finalizer":           {component.ReconcilerOptions{Finalizer: &shared}, component.ReconcilerOptions{Finalizer: &shared}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: map[string]string{"a": "1", "b": "1"}}, test.first)
			second := b.second(test.second, nil)
			second.reconcile()
			b.update(func(w *widget.Widget) { w.Spec.Values["a"] = "2" })
			before := b.get()
			for range 2 {
				if _, result, err := second.reconcile(); !result.IsZero() || err != nil {
					t.Errorf("%+v, %v", result, err)
				}
			}
			if diff := cmp.Diff(before, b.get()); diff != "" || len(second.writes()) > 0 {
				t.Errorf("the second operator wrote %v (-before +after):\n%s", second.writes(), diff)
			}
			b.wantEvent(vocabulary.ReasonOwnerConflict, "operator "+operatorName+" has claimed it")
			b.wantEvent(vocabulary.ReasonOwnerConflict, "operator "+secondName+" leaves it alone")
			b.until(v1alpha1.StateReady)
			b.check(b.client.Delete(t.Context(), b.get()))
			second.reconcile()
			b.untilGone()
			b.wantNone("a", "b")
		})
	}
}

// The first operator is faster, after the second one has added its finalizer to the new component.
func TestOfTwoOperatorsThatClaimAComponentAtOnceOneLeavesIt(t *testing.T) {
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	var once sync.Once
	second := b.second(component.ReconcilerOptions{}, func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPatch && strings.HasSuffix(r.URL.Path, "/widgets/main/status") {
				once.Do(func() { b.until(v1alpha1.StateReady) })
			}
			return next.RoundTrip(r)
		})
	})
	second.reconcile()
	if got := b.get(); !slices.Contains(got.Finalizers, secondName) || got.Status.Reconciler != operatorName {
		t.Fatalf("finalizers %v, reconciler %s", got.Finalizers, got.Status.Reconciler)
	}
	second.reconcile()
	if got := b.get().Finalizers; !slices.Equal(got, []string{operatorName}) {
		t.Errorf("finalizers %v", got)
	}
	b.remove()
}

func TestARenamedOperatorTakesOverItsComponents(t *testing.T) {
	for name, test := range map[string]struct {
		values    map[string]string
		annotated bool
		update    component.ReconcilerOptions
		writes    int // of each object that changes hands; 0 means 1
	}{
		"by the annotation":             {values: many(0, 3), annotated: true},
		"by the option":                 {values: many(0, 3)},
		"with the inventory in Secrets": {values: many(0, 30), annotated: true},
		"with server-side apply":        {values: many(0, 3), annotated: true, update: component.ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicySsaMerge)}, writes: 3},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: test.values}, test.update, smallStatus)
			options := test.update
			if !test.annotated {
				options.Operator.AdoptOperator = operatorName
			}
			second := b.second(options, nil)
			if test.annotated {
				second.reconcile()
				b.annotate(map[string]string{secondName + "/adopt-operator": operatorName})
			}
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			second.until(v1alpha1.StateReady)
			if w := b.get(); !slices.Equal(w.Finalizers, []string{secondName}) || w.Status.Reconciler != secondName || w.Status.Revision != 2 {
				t.Errorf("finalizers %v, reconciler %s, revision %d", w.Finalizers, w.Status.Reconciler, w.Status.Revision)
			}
			writes := slices.DeleteFunc(second.writes(), func(write string) bool { return !strings.Contains(write, " configmaps ") })
			if want := max(test.writes, 1)*(len(test.values)-1) + 1; len(writes) != want || !slices.Contains(writes, "delete configmaps config-00") {
				t.Errorf("%d writes of dependents: %v", len(writes), writes)
			}
			if former, own := b.labelled(operatorName), b.labelled(secondName); len(former) > 0 || len(own) != len(test.values)-1 {
				t.Errorf("%d objects have the former label, and %d the label", len(former), len(own))
			}
			for _, secret := range b.secrets() {
				if strings.HasPrefix(string(secret.Type), operatorName) {
					t.Errorf("Secret %s of type %s is left", secret.Name, secret.Type)
				}
			}
			b.resetRequests()
			b.reconcile()
			if writes := b.writes(); len(writes) > 0 {
				t.Errorf("the former operator wrote %v", writes)
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			second.untilGone()
			if left := b.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// labelled returns the config maps with the label of an operator.
func (b *bed) labelled(operator string) (names []string) {
	b.Helper()
	list := &corev1.ConfigMapList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace), client.HasLabels{operator + "/owner-id"}))
	for _, object := range list.Items {
		names = append(names, object.Name)
	}
	return names
}

// left returns what is left of the dependents, and of the Secrets of the inventory of both operators.
func (b *bed) left() []string {
	b.Helper()
	left := append(b.labelled(operatorName), b.labelled(secondName)...)
	for _, secret := range b.secrets() {
		if secret.Type != secondName+"/revisions" {
			left = append(left, secret.Name)
		}
	}
	return left
}

// No finalizer can be added to a component that is being deleted.
func TestARenamedOperatorEndsADeletion(t *testing.T) {
	for name, test := range map[string]struct {
		values int
		detach bool
	}{
		"that nobody has begun":         {values: 3},
		"with the inventory in Secrets": {values: 30},
		"that detaches":                 {values: 3, detach: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, test.values)}, component.ReconcilerOptions{}, smallStatus)
			if test.detach {
				b.annotate(map[string]string{secondName + "/management-policy": "detach-on-delete"})
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			second := b.second(component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}, nil)
			second.untilGone()
			if left := b.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
			if _, exists := b.configMap("config-01"); exists != test.detach {
				t.Errorf("an object exists: %t", exists)
			}
		})
	}
}

// The process ends after any of its writes, and another one goes on.
func TestARenamedOperatorCrashes(t *testing.T) {
	for last := range 12 {
		t.Run(strconv.Itoa(last), func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 30)}, component.ReconcilerOptions{}, smallStatus)
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			var sent atomic.Int32
			options := component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}
			b.second(options, func(next http.RoundTripper) http.RoundTripper {
				return wire.Through(next, func(r *http.Request) (*http.Response, error) {
					if r.Method != http.MethodGet && int(sent.Add(1)) > last {
						return nil, errors.New("it has ended")
					}
					return next.RoundTrip(r)
				})
			}).reconcile()
			second := b.second(options, nil)
			w := second.until(v1alpha1.StateReady)
			if _, exists := b.configMap("config-00"); exists || w.Status.Inventory.Count() != 29 {
				t.Errorf("the object that is not desired exists: %t; %d are recorded", exists, w.Status.Inventory.Count())
			}
			b.wantNoEvent("InventoryRebuilt")
			for _, secret := range b.secrets() {
				if strings.HasPrefix(string(secret.Type), operatorName) {
					t.Errorf("Secret %s of type %s is left", secret.Name, secret.Type)
				}
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			second.untilGone()
			if left := b.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

func TestARenamedOperatorFindsWhatWasLostUnderTheFormerName(t *testing.T) {
	for name, lose := range map[string]func(b *bed){
		"Secrets of the inventory": (*bed).destroy,
		"the status":               func(b *bed) { b.patchStatus(statusEmptied) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, 30)}, component.ReconcilerOptions{}, smallStatus)
			b.update(func(w *widget.Widget) { delete(w.Spec.Values, "config-00") })
			lose(b)
			second := b.second(component.ReconcilerOptions{Operator: component.OperatorOptions{AdoptOperator: operatorName}}, nil)
			second.until(v1alpha1.StateReady)
			b.wantNone("config-00")
			b.wantEvent("InventoryRebuilt", "were found again")
		})
	}
}

func TestAnotherDigestKeyRecreatesNothing(t *testing.T) {
	options := component.ReconcilerOptions{UpdatePolicy: new(v1alpha1.UpdatePolicyRecreate)}
	b := newBed(t, manifests.GeneratorFunc(configMaps), options)
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1"}})
	first, before := b.until(v1alpha1.StateReady), b.uids("a", "b")
	options.Operator.OperatorNamespace = &b.namespace
	for i, test := range []struct {
		what string
		lost bool
		b    string // value of config map b
	}{{"a release in another namespace takes over", false, "1"}, {"the key is lost", true, "1"}, {"the key is lost while the spec changes", true, "2"}} {
		if test.lost {
			b.check(b.client.Delete(t.Context(), &corev1.Secret{ObjectMeta: b.object(operatorName + "-digest-key")}))
		}
		b.update(func(w *widget.Widget) { w.Spec.Values["b"] = test.b })
		b.restartWith(manifests.GeneratorFunc(configMaps), options)
		b.resetRequests()
		w, revision := b.untilGeneration(), first.Status.Revision+int64(i/2)
		if after := b.uids("a", "b"); !slices.Equal(after, before) || w.Status.Revision != revision {
			t.Errorf("%s: revision %d, want %d; uids %v were %v", test.what, w.Status.Revision, revision, after, before)
		}
		if writes := without(b.writes(), "widgets", "digest-key", "-revisions"); !slices.Equal(writes, []string{"update configmaps a", "update configmaps b"}) {
			t.Errorf("%s: writes %v", test.what, writes)
		}
		if w.Status.Inventory.Operator.Key == first.Status.Inventory.Operator.Key {
			t.Errorf("%s: the key is the one of before", test.what)
		}
		for _, item := range w.Status.Inventory.Items {
			if strings.HasPrefix(item.Digest, "?") {
				t.Errorf("%s: the digest of %s %s is %s", test.what, item.Kind, item.Name, item.Digest)
			}
		}
		b.resetRequests()
		b.reconcile()
		if writes := b.writes(); len(writes) > 0 {
			t.Errorf("%s: writes at rest: %v", test.what, writes)
		}
	}
	if value, _ := b.configMap("b"); value != "2" {
		t.Errorf("config map b is %q", value)
	}
	b.setValues(map[string]string{"a": "1", "b": "3"})
	if after := b.uids("a", "b"); after[0] != before[0] || after[1] == before[1] {
		t.Errorf("after a change of a manifest: %v, before %v", after, before)
	}
}

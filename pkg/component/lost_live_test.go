// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	apitypes "k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/internal/vocabulary"
	"github.com/corbel-run/corbel/pkg/component"
	"github.com/corbel-run/corbel/pkg/component/testdata/widget"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
	"github.com/corbel-run/corbel/test/wire"
)

// patchStatus changes the status of the component as a client does that may.
func (b *bed) patchStatus(jsonPatch string) {
	b.Helper()
	b.check(b.client.Status().Patch(b.Context(), b.get(), client.RawPatch(apitypes.JSONPatchType, []byte(jsonPatch))))
}

// The ways in which a status is lost.
const (
	statusEmptied    = `[{"op": "replace", "path": "/status", "value": {}}]`
	inventoryDropped = `[{"op": "remove", "path": "/status/inventory"}]`
)

// searches counts the requests that look for objects by their ownership label since the last resetRequests.
func (b *bed) searches() (count int) {
	b.Helper()
	for _, e := range b.events()[b.since:] {
		if e.User == b.user && e.Verb == "list" && strings.Contains(e.URI, "owner-id") && strings.Contains(e.URI, "limit=500") && !strings.Contains(e.URI, "resourceVersion") {
			count++
		}
	}
	return count
}

// withAccount adds a ServiceAccount, or fails, if a value asks for it.
func withAccount(ctx context.Context, namespace, name string, parameters types.Unstructurable) ([]client.Object, error) {
	if parameters.(*widget.Spec).Values["fails"] != "" {
		return nil, errors.New("it is broken")
	}
	objects, err := configMaps(ctx, namespace, name, parameters)
	for i, object := range objects {
		if object.GetName() == "account" {
			objects[i] = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "account"}}
		}
	}
	return objects, err
}

func TestAComponentThatLostItsStatusFindsItsObjectsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		loss   string
		values int
		fails  bool // to render, after the loss
	}{
		"an empty status":               {loss: statusEmptied, values: 3},
		"while nothing can be rendered": {loss: statusEmptied, values: 3, fails: true},
		"an inventory that was dropped": {loss: inventoryDropped, values: 3},
		"an inventory in Secrets":       {loss: statusEmptied, values: 30},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(withAccount), component.ReconcilerOptions{}, smallStatus)
			values := many(0, test.values)
			values["account"] = "1"
			b.create(widget.Spec{Values: values})
			b.until(v1alpha1.StateReady)
			if searches := b.searches(); searches > 0 {
				t.Errorf("%d searches in the installation", searches)
			}
			foreign := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("config-01"), foreign))
			earlier := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "earlier", Labels: foreign.Labels}}
			owner := foreign.Annotations[operatorName+"/owner"]
			earlier.Annotations = map[string]string{operatorName + "/owner": owner[:strings.LastIndex(owner, "/")] + "/another-uid"}
			b.check(b.client.Create(t.Context(), earlier))

			b.patchStatus(test.loss)
			b.update(func(w *widget.Widget) {
				delete(w.Spec.Values, "config-00")
				delete(w.Spec.Values, "account") // of this type, nothing is rendered any more
			})
			if test.fails {
				b.update(func(w *widget.Widget) { w.Spec.Values["fails"] = "1" })
				b.until(v1alpha1.StateError)
				b.update(func(w *widget.Widget) { delete(w.Spec.Values, "fails") })
			}
			if !test.fails { // the process that failed goes on
				b.anew()
			}
			b.resetRequests()
			w := b.until(v1alpha1.StateReady)
			b.wantNone("config-00")
			if err := b.client.Get(t.Context(), b.key("account"), &corev1.ServiceAccount{}); !apierrors.IsNotFound(err) {
				t.Errorf("the object of a type that is not desired any more: %v", err)
			}
			if _, exists := b.configMap("earlier"); !exists {
				t.Error("the object of an earlier component is gone")
			}
			if w.Status.Inventory.Count() != test.values-1 || w.Status.Inventory.IsLost() {
				t.Errorf("the inventory has %d objects", w.Status.Inventory.Count())
			}
			b.reconcile()
			b.anew()
			b.reconcile()
			if searches := b.searches(); searches != 2 { // one of each type
				t.Errorf("%d searches", searches)
			}
			b.wantEvent("InventoryRebuilt", "it was lost, perhaps with the whole status")
			b.wantEvent("Released", "earlier")
			b.remove()
			if left := b.secrets(); len(left) > 0 {
				t.Errorf("%d Secrets are left", len(left))
			}
		})
	}
}

func TestAComponentThatLostItsStatusIsDeletedWithItsObjects(t *testing.T) {
	none := 0
	for name, test := range map[string]struct {
		values    int
		options   component.ReconcilerOptions
		configure func(b *bed)
		left      int
	}{
		"with kept revisions":     {values: 3},
		"without":                 {values: 3, options: component.ReconcilerOptions{Revisions: component.RevisionOptions{RevisionHistoryLimit: &none}}},
		"an inventory in Secrets": {values: 30},
		"detached":                {values: 30, left: 30, configure: func(b *bed) { b.setPolicy("detach-on-delete") }},
		"after its status was written while nothing was done": {values: 3, configure: func(b *bed) {
			b.patchStatus(statusEmptied)
			b.update(func(w *widget.Widget) { w.Spec.Suspend = true })
			b.until(v1alpha1.StateSuspended)
		}},
		"after its status was written by an error": {values: 3, configure: func(b *bed) {
			b.patchStatus(statusEmptied)
			b.setPolicy("unknown")
			b.until(v1alpha1.StateError)
			b.setPolicy("manage")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: many(0, test.values)}, test.options, smallStatus)
			if test.configure != nil {
				test.configure(b)
			}
			if b.get().Status.Inventory.Count() > 0 {
				b.patchStatus(statusEmptied)
			}
			b.remove()
			list := &corev1.ConfigMapList{}
			b.check(b.client.List(t.Context(), list, client.InNamespace(b.namespace)))
			left := 0
			for _, configMap := range list.Items {
				if strings.HasPrefix(configMap.Name, "config-") {
					left++
				}
				if configMap.Labels[operatorName+"/"+vocabulary.LabelOwnerID] != "" {
					t.Errorf("%s still has our label", configMap.Name)
				}
			}
			if secrets := b.secrets(); left != test.left || len(secrets) > 0 {
				t.Errorf("%d objects and %d Secrets are left", left, len(secrets))
			}
		})
	}
}

// Two operators of one kind, each with its own components, have the component in turns.
func TestAComponentThatChangesItsShardLosesNothingOfAnInventoryInSecrets(t *testing.T) {
	for name, seen := range map[string]bool{"and its operator sees it go": true, "and its operator is busy": false} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, rendering(), component.ReconcilerOptions{})
			operators := map[string]*component.Reconciler[*widget.Widget]{}
			for _, shard := range []string{"a", "b"} {
				selector := &metav1.LabelSelector{MatchLabels: map[string]string{"shard": shard}}
				options := component.ReconcilerOptions{Controller: component.ControllerOptions{LabelSelector: selector}}
				b.restartWith(manifests.GeneratorFunc(configMaps), options, smallStatus)
				operators[shard] = b.reconciler
			}
			b.create(widget.Spec{})
			var first []apitypes.UID
			// It belongs to no shard for a while. Later it comes back to a process that remembers another inventory.
			for _, step := range []struct {
				shard    string
				from, to int
			}{{"a", 0, 30}, {"none", 0, 30}, {"a", 2, 30}, {"b", 4, 32}, {"b", 6, 34}, {"a", 8, 36}, {"b", 9, 36}} {
				b.update(func(w *widget.Widget) {
					w.Labels, w.Spec.Values = map[string]string{"shard": step.shard}, many(step.from, step.to)
				})
				for shard, operator := range operators {
					if shard == step.shard || shard == "a" && !seen {
						continue
					}
					b.reconciler = operator
					b.resetRequests()
					b.reconcile()
					b.wantNoWrites(fmt.Sprintf("of shard %s, the operator of shard %s writes", step.shard, shard))
				}
				b.reconciler = operators[step.shard]
				if b.reconciler == nil {
					continue
				}
				w := b.untilGeneration()
				if w.Status.Inventory.Count() != len(w.Spec.Values) || w.Status.Inventory.Chunks == nil || len(b.secrets()) == 0 {
					t.Errorf("%d objects are on record in %d Secrets, want %d", w.Status.Inventory.Count(), len(b.secrets()), len(w.Spec.Values))
				}
				for name := range many(0, 40) {
					if _, exists := b.configMap(name); exists != (w.Spec.Values[name] != "") {
						t.Errorf("config map %s is there: %t", name, exists)
					}
				}
				if first == nil {
					first = b.uids("config-20")
				}
				if !slices.Equal(b.uids("config-20"), first) {
					t.Error("an object was created anew")
				}
			}
			b.wantNoEvent("InventoryRebuilt")
			b.check(b.client.Delete(t.Context(), b.get()))
			for _, shard := range []string{"b", "a"} {
				b.reconciler = operators[shard]
				b.untilGone()
			}
			if left := b.left(); len(left) > 0 {
				t.Errorf("left: %v", left)
			}
		})
	}
}

// TestAComponentThatBringsItsOwnRightsCanBeDeleted: the Role and the RoleBinding go after what the account removes with them.
func TestAComponentThatBringsItsOwnRightsCanBeDeleted(t *testing.T) {
	generate := func(ctx context.Context, namespace, name string, p types.Unstructurable) ([]client.Object, error) {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: "brought"}
		own := []client.Object{
			&rbacv1.Role{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "Role"}, ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "*")}},
			&rbacv1.RoleBinding{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "RoleBinding"}, ObjectMeta: meta,
				RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "brought"}, Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: namespace, Name: "deployer"}}},
		}
		others, err := configMaps(ctx, namespace, name, p)
		return append(own, others...), err
	}
	b := newBed(t, manifests.GeneratorFunc(generate), component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
	b.check(b.client.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "deployer"}}))
	b.grant("system:serviceaccount:"+b.namespace+":deployer", rule("rbac.authorization.k8s.io", "roles rolebindings", "*"))
	b.create(widget.Spec{Values: map[string]string{"a": "1", "b": "1", "c": "1", "d": "1"}})
	b.until(v1alpha1.StateReady)
	b.remove()
	b.wantNone("a", "d")
}

// TestADeletionThatOrphansDetaches deletes with the propagation policy Orphan; the test does what the garbage collector does.
func TestADeletionThatOrphansDetaches(t *testing.T) {
	for name, collect := range map[string]func(b *bed){
		"the finalizer is there": func(*bed) {},
		"the collector was faster, while no operator ran": func(b *bed) {
			secret := b.kept()
			secret.OwnerReferences = nil
			b.check(b.client.Update(b.Context(), secret))
			b.anew()
			b.patchFinalizers(operatorName)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newReady(t, manifests.GeneratorFunc(configMaps), widget.Spec{Values: map[string]string{"a": "1"}}, component.ReconcilerOptions{})
			kept := client.ObjectKeyFromObject(b.kept())
			b.check(b.client.Delete(t.Context(), b.get(), client.PropagationPolicy(metav1.DeletePropagationOrphan)))
			collect(b)
			b.eventually("our finalizer is removed", func() error {
				if _, err := b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}); err != nil {
					return err
				}
				w := &widget.Widget{}
				if err := b.client.Get(t.Context(), b.key("main"), w); err != nil {
					return client.IgnoreNotFound(err)
				}
				if slices.Contains(w.Finalizers, operatorName) {
					return fmt.Errorf("the finalizers are %v", w.Finalizers)
				}
				b.patchFinalizers() // as the garbage collector does
				return nil
			})
			live := &corev1.ConfigMap{}
			b.check(b.client.Get(t.Context(), b.key("a"), live))
			if len(live.Labels)+len(live.Annotations) > 0 {
				t.Errorf("it is not detached: %v", live.ObjectMeta)
			}
			if err := b.client.Get(t.Context(), kept, &corev1.Secret{}); !apierrors.IsNotFound(err) {
				t.Errorf("the Secret of the revisions is left: %v", err)
			}
		})
	}
}

// kept returns the Secret with the random values.
func (b *bed) kept() *corev1.Secret {
	b.Helper()
	list := &corev1.SecretList{}
	b.check(b.client.List(b.Context(), list, client.InNamespace(b.namespace)))
	for _, secret := range list.Items {
		if string(secret.Type) == operatorName+"/revisions" {
			return &secret
		}
	}
	b.Fatal("no Secret with random values")
	return nil
}

func TestASecretOfRevisionsThatIsMadeAfterItsComponentIsGoneGoes(t *testing.T) {
	var cut atomic.Bool
	lose := func(next http.RoundTripper) http.RoundTripper {
		return wire.Through(next, func(r *http.Request) (*http.Response, error) {
			if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/secrets") && !cut.Swap(true) {
				return nil, errors.New("the answer is lost")
			}
			return next.RoundTrip(r)
		})
	}
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, via(lose))
	b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	late := b.kept()
	b.remove()
	b.check(client.IgnoreNotFound(b.client.Delete(t.Context(), late.DeepCopy())))
	late.ResourceVersion, late.UID = "", ""
	b.check(b.client.Create(t.Context(), late))
	for _, after := range []time.Duration{time.Minute, time.Minute} {
		b.forward += after
		must(b.reconciler.Reconcile(t.Context(), ctrl.Request{NamespacedName: b.key("main")}))(t)
	}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(late), late); !apierrors.IsNotFound(err) {
		t.Errorf("the Secret is left: %v", err)
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package component_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// scattered renders a ConfigMap for each value, in the namespace that is the value.
func scattered(_ context.Context, namespace, _ string, p types.Unstructurable) (objects []client.Object, err error) {
	values := p.(*widget.Spec).Values
	for _, name := range slices.Sorted(maps.Keys(values)) {
		object := &corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, ObjectMeta: metav1.ObjectMeta{Namespace: values[name], Name: name}}
		objects = append(objects, object)
	}
	return objects, nil
}

// account makes a service account and lets it write ConfigMaps in namespaces; the RoleBindings are returned.
func (b *bed) account(name string, namespaces ...string) (account client.Object, bindings []client.Object) {
	b.Helper()
	account = &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: name}}
	b.check(b.client.Create(b.Context(), account))
	for _, namespace := range namespaces {
		meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
		binding := &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: b.namespace, Name: name}}}
		b.check(b.client.Create(b.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule("", "configmaps", "*")}}))
		b.check(b.client.Create(b.Context(), binding))
		bindings = append(bindings, binding)
	}
	return account, bindings
}

// TestTheNamespaceOfATenantCanBeDeleted: the namespace controller has removed the rights of the account, and perhaps the
// account, before the component is gone. Here no controller removes anything.
func TestTheNamespaceOfATenantCanBeDeleted(t *testing.T) {
	for name, test := range map[string]struct {
		elsewhere, keepsAccount, keepsNamespace bool
		released                                bool
		event                                   string
	}{
		"all in it":                                   {released: true},
		"all in it, the account is there":             {keepsAccount: true, released: true},
		"something elsewhere":                         {elsewhere: true, released: true, event: "orphaned 1 object: ConfigMap NAMESPACE/far; ServiceAccount "},
		"something elsewhere, the account is there":   {elsewhere: true, keepsAccount: true},
		"the namespace is not deleted":                {keepsNamespace: true},
		"the namespace is not deleted, and elsewhere": {elsewhere: true, keepsNamespace: true},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBed(t, manifests.GeneratorFunc(scattered), component.ReconcilerOptions{DefaultServiceAccount: new("deployer")})
			b.auditOptions.IdentityGone = test.event != ""
			other := b.newNamespace()
			account, bindings := b.account("deployer", b.namespace, other)
			values := map[string]string{"near": b.namespace}
			if test.elsewhere {
				values["far"] = other
			}
			b.create(widget.Spec{Values: values})
			b.until(v1alpha1.StateReady)
			for _, binding := range bindings {
				b.check(b.client.Delete(t.Context(), binding))
			}
			if !test.keepsAccount {
				b.check(b.client.Delete(t.Context(), account))
			}
			if !test.keepsNamespace {
				b.check(b.client.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b.namespace}}))
			}
			b.check(b.client.Delete(t.Context(), b.get()))
			if !test.released {
				b.eventually("the deletion is forbidden", func() error {
					w, _, _ := b.reconcile()
					if _, reason, message := w.Status.GetState(); reason != vocabulary.ReasonForbidden {
						return fmt.Errorf("%s: %s", reason, message)
					}
					return nil
				})
				b.update(func(w *widget.Widget) { w.Annotations = map[string]string{operatorName + "/abandon": "true"} })
			}
			b.untilGone()
			// The event is about the namespace, in which none can be made any more.
			said := func() error {
				list := &eventsv1.EventList{}
				b.check(b.client.List(t.Context(), list, client.InNamespace("default")))
				for _, event := range list.Items {
					if event.Reason == "IdentityGone" && event.Regarding.Name == b.namespace && strings.Contains(event.Note, strings.ReplaceAll(test.event, "NAMESPACE", other)) {
						return nil
					}
				}
				return errors.New("it is not there")
			}
			if test.event != "" {
				b.eventually("event IdentityGone", said)
			} else if said() == nil {
				t.Error("event IdentityGone, and nothing is orphaned")
			}
			for name, namespace := range values {
				if err := b.client.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: name}, &corev1.ConfigMap{}); err != nil {
					t.Errorf("the operator deleted what it may not: %v", err)
				}
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
	b.check(b.client.Delete(t.Context(), b.get()))
	b.untilGone()
	for _, name := range []string{"a", "d"} {
		if _, there := b.configMap(name); there {
			t.Errorf("ConfigMap %s is left", name)
		}
	}
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
			b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{})
			b.create(widget.Spec{Values: map[string]string{"a": "1"}})
			b.until(v1alpha1.StateReady)
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
	b := newBed(t, manifests.GeneratorFunc(configMaps), component.ReconcilerOptions{}, func(b *bed) { b.manager = newManagerVia(t, b.env, b.user, lose) })
	w := b.create(widget.Spec{Values: map[string]string{"a": "1"}})
	b.until(v1alpha1.StateReady)
	late := b.kept()
	b.check(b.client.Delete(t.Context(), w))
	b.untilGone()
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

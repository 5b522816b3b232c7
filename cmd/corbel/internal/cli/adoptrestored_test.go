// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/cmd/corbel/internal/inspect"
	"github.com/corbel-run/corbel/cmd/corbel/test/shops"
	"github.com/corbel-run/corbel/test/check"
	"github.com/corbel-run/corbel/test/env"
)

func TestOnlyObjectsThatWereRestoredWithAComponentAreTakenOver(t *testing.T) {
	object := &unstructured.Unstructured{}
	object.SetNamespace("branch")
	object.SetName("corner")
	c := inspect.Component{Object: object, Type: inspect.Type{GroupVersionKind: schema.GroupVersionKind{Group: "shop.example.com", Version: "v1", Kind: "Shop"}}}
	for _, test := range []struct{ name, namespace, owner, want, why string }{
		{"of the original", "branch", "shop.example.com/Shop/market/corner/u1", "shop.example.com/Shop/branch/corner/u1", ""},
		{"of no owner", "branch", "", "", "names no component as its owner"},
		{"of a damaged annotation", "branch", "shop.example.com/Shop/market", "", "names no component as its owner"},
		{"elsewhere", "market", "shop.example.com/Shop/market/corner/u1", "", "is outside of namespace branch, and stays an object of Shop market/corner"},
		{"without a namespace", "", "shop.example.com/Shop/market/corner/u1", "", "is outside of namespace branch, and stays an object of Shop market/corner"},
		{"of another name", "branch", "shop.example.com/Shop/market/kiosk/u1", "", "belongs to Shop market/kiosk, which is no Shop of the name corner in another namespace"},
		{"of another kind", "branch", "shop.example.com/Store/market/corner/u1", "", "belongs to Store market/corner, which is no Shop of the name corner in another namespace"},
		{"of another group", "branch", "example.com/Shop/market/corner/u1", "", "belongs to Shop market/corner, which is no Shop of the name corner in another namespace"},
		{"of a component without a namespace", "branch", "shop.example.com/Shop//corner/u1", "shop.example.com/Shop/branch/corner/u1", ""},
		{"taken over before", "branch", "shop.example.com/Shop/branch/corner/u1", "", `names Shop branch/corner already; its conflict has another cause: "corbel why shop.shop.example.com/corner -n branch"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			value, why := restoredOwner(c, test.namespace, test.owner)
			check.Equal(t, []string{test.want, test.why}, []string{value, why})
		})
	}
}

// restores plays a restore of a Shop into another namespace, beside its original.
func (b *bed) restores(t *testing.T) {
	b = b.in(t)
	const branch = "branch"
	run := func(arguments ...string) answer {
		return runAs(b.ctx, nil, append(arguments, "--kubeconfig", b.env.Kubeconfig(), "--namespace", branch)...)
	}
	check.NoError(b, b.client.Create(b.ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: branch}}))
	original := shops.New("corner")
	check.NoError(b, b.client.Get(b.ctx, client.ObjectKeyFromObject(original), original))
	secret := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Secret", "metadata": map[string]any{"namespace": market, "name": "corner-database"}}}
	objects := []*unstructured.Unstructured{b.live(secret)}
	for _, item := range original.Status.Inventory.Items {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(inspect.KindOf(item))
		object.SetNamespace(item.Namespace)
		object.SetName(item.Name)
		if item.Kind != "Job" { // it is gone
			objects = append(objects, b.live(object))
		}
	}
	restored := make([]*unstructured.Unstructured, len(objects))
	for i, object := range objects {
		u := object.DeepCopy()
		u.Object["metadata"] = map[string]any{}
		u.SetName(object.GetName())
		u.SetNamespace(branch)
		u.SetLabels(object.GetLabels())
		u.SetAnnotations(object.GetAnnotations())
		unstructured.RemoveNestedField(u.Object, "metadata", "annotations", "pv.kubernetes.io/bind-completed") // else the claim has lost its volume
		for _, field := range []string{"clusterIP", "clusterIPs", "volumeName"} {
			unstructured.RemoveNestedField(u.Object, "spec", field)
		}
		delete(u.Object, "status")
		check.NoError(b, b.client.Create(b.ctx, u))
		restored[i] = u
	}
	before, was := b.uids(restored), b.uids(objects)
	shop := shops.New("corner")
	shop.Namespace = branch
	check.NoError(b, b.client.Create(b.ctx, shop))
	env.Until(b, "the Shop has a conflict that names the command", func() error {
		if err := b.client.Get(b.ctx, client.ObjectKeyFromObject(shop), shop); err != nil {
			return err
		}
		if _, reason, message := shop.Status.GetState(); reason != "OwnerConflict" || !strings.Contains(message, `"corbel adopt restored shop.shop.example.com/corner -n branch"`) {
			return errors.New(reason + ": " + message)
		}
		return nil
	})
	golden(t, "adopt restored dry run", run("adopt", "restored", "shop/corner", "--dry-run").text())
	golden(t, "adopt restored", run("adopt", "restored", "shop/corner").text())
	if a := run("wait", "shop/corner", "--timeout", "1m"); a.code != 0 {
		t.Fatal(a.text())
	}
	golden(t, "adopt restored again", run("adopt", "restored", "shop/corner").text())
	check.Equal(t, before, b.uids(restored))
	if a := run("delete", "shop/corner"); a.code != 0 {
		t.Error(a.text())
	}
	check.Equal(t, was, b.uids(objects))
	b.untilReady("corner")
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/internal/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
	"github.com/corbel-run/corbel/test/check"
)

// What a component in a namespace says is read by the tenants of that namespace.
func TestObjectsOfOthersInOtherNamespacesAreNotNamed(t *testing.T) {
	secrets := cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	foos := cluster.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}, Kind: "Foo"}
	object := func(namespace, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	}
	for name, tc := range map[string]struct {
		owner     string // its namespace
		instances []metav1.PartialObjectMetadata
		of        cluster.Resource
		want      string
	}{
		"its own namespace": {"shop", []metav1.PartialObjectMetadata{object("shop", "a")}, secrets, "1 foreign instance: Secret shop/a"},
		"another namespace": {"shop", []metav1.PartialObjectMetadata{object("bank", "a"), object("bank", "b")}, secrets,
			"2 foreign instances (listed by kubectl get secrets --all-namespaces)"},
		"both": {"shop", []metav1.PartialObjectMetadata{object("bank", "b"), object("shop", "a")}, secrets,
			"2 foreign instances: Secret shop/a and 1 more (listed by kubectl get secrets --all-namespaces)"},
		"many": {"shop", []metav1.PartialObjectMetadata{object("shop", "a"), object("shop", "b"), object("shop", "c"), object("shop", "d"), object("shop", "e"), object("shop", "f")}, secrets,
			"6 foreign instances: Secret shop/a, Secret shop/b, Secret shop/c, Secret shop/d, Secret shop/e and 1 more (listed by kubectl get secrets --all-namespaces)"},
		"no namespace": {"shop", []metav1.PartialObjectMetadata{object("", "a")}, foos,
			"1 foreign instance (listed by kubectl get foos.example.com --all-namespaces)"},
		"a component without a namespace": {"", []metav1.PartialObjectMetadata{object("bank", "b"), object("", "a")}, foos,
			"2 foreign instances: Foo a and 1 more (listed by kubectl get foos.example.com --all-namespaces)"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &instanceCount{owner: plan.Owner{Ref: plan.OwnerRef{Namespace: tc.owner, Name: "main"}}}
			for _, item := range tc.instances {
				c.addInstance(tc.of, item)
			}
			check.Same(t, tc.want, c.describeBlocking())
		})
	}
}

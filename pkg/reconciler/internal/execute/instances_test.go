// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package execute

import (
	"strconv"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/cluster"
	"github.com/corbel-run/corbel/pkg/reconciler/internal/plan"
)

// What a component in a namespace says is read by the tenants of that namespace.
func TestObjectsOfOthersInOtherNamespacesAreNotNamed(t *testing.T) {
	secrets := cluster.Resource{GVR: schema.GroupVersionResource{Version: "v1", Resource: "secrets"}, Kind: "Secret", Namespaced: true}
	foos := cluster.Resource{GVR: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "foos"}, Kind: "Foo"}
	object := func(namespace, name string) metav1.PartialObjectMetadata {
		return metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(namespace + name)}}
	}
	here, everywhere := plan.Owner{Ref: plan.OwnerRef{Namespace: "shop", Name: "main"}}, plan.Owner{Ref: plan.OwnerRef{Name: "main"}}
	for name, tc := range map[string]struct {
		owner     plan.Owner
		instances []metav1.PartialObjectMetadata
		of        cluster.Resource
		want      string
	}{
		"its own namespace": {here, []metav1.PartialObjectMetadata{object("shop", "a")}, secrets, "1 foreign instance: Secret shop/a"},
		"another namespace": {here, []metav1.PartialObjectMetadata{object("bank", "a"), object("bank", "b")}, secrets,
			"2 foreign instances outside of namespace shop (listed by kubectl get secrets --all-namespaces)"},
		"both": {here, []metav1.PartialObjectMetadata{object("bank", "b"), object("shop", "a")}, secrets,
			"2 foreign instances: Secret shop/a, and 1 outside of namespace shop (listed by kubectl get secrets --all-namespaces)"},
		"no namespace": {here, []metav1.PartialObjectMetadata{object("", "a")}, foos,
			"1 foreign instance outside of namespace shop (listed by kubectl get foos.example.com --all-namespaces)"},
		"a component without a namespace": {everywhere, []metav1.PartialObjectMetadata{object("bank", "b"), object("", "a")}, foos,
			"2 foreign instances: Foo bank/b, Foo a"},
	} {
		t.Run(name, func(t *testing.T) {
			c := &instanceCount{owner: tc.owner}
			for _, item := range tc.instances {
				c.addInstance(tc.of, item)
			}
			if got := c.describeBlocking(); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
			if lost := c.describeLost(); tc.owner == here && strings.Contains(lost, "bank") {
				t.Errorf("lost: %s", lost)
			}
		})
	}
	for name, tc := range map[string]struct {
		owner      plan.Owner
		want, lost string
	}{
		"content, and a component without a namespace": {everywhere, "2 objects live in it: Secret s0, Secret s1", "Secret s0, Secret s1"},
		"content of another namespace":                 {here, "2 objects live in it (listed by kubectl get secrets --namespace tenants)", "2 objects (secrets)"},
	} {
		t.Run(name, func(t *testing.T) {
			content := newNamespaceContents(plan.Step{Key: plan.Key{Kind: "Namespace", Name: "tenants"}, Owner: tc.owner}, nil)
			for i := range 2 {
				content.add(secrets, typeListing{complete: true, objects: []contentObject{contentObjectOf(secrets, object("tenants", "s"+strconv.Itoa(i)))}})
			}
			if content.String() != tc.want || content.describeLost() != tc.lost {
				t.Errorf("got %q, and %q", content, content.describeLost())
			}
		})
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package rendering

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/corbel-run/corbel/pkg/component/internal/identity"
	"github.com/corbel-run/corbel/test/check"
)

// now is the component that is there now.
type now struct{ identity.Component }

func (now) GetNamespace() string { return "shop" }
func (now) GetName() string      { return "main" }
func (now) GetUID() types.UID    { return "now" }

func TestWhichValuesOfLiveObjectsARestoredComponentCarriesOver(t *testing.T) {
	const previous, own, label = "example.com/Widget/shop/main/before", "example.com/Widget/shop/main/now", "shop.example.com/owner-id"
	password := []any{"data", "password"}
	for _, test := range []struct {
		name, kind, namespace, owner, label string
		path                                []any
		lost, want                          bool
	}{
		{"a password", "Secret", "shop", previous, label, password, false, true},
		{"a password in plain text", "Secret", "shop", previous, label, []any{"stringData", "password"}, false, true},
		{"the checksum of a Secret", "Deployment", "shop", previous, label, []any{"spec", "template", "metadata", "annotations", "checksum/secret"}, false, true},
		{"the bundle of a webhook", "ValidatingWebhookConfiguration", "", previous, label, []any{"webhooks", int64(0), "clientConfig", "caBundle"}, false, true},
		{"an annotation of the object", "Deployment", "shop", previous, label, []any{"metadata", "annotations", "id"}, false, false},
		{"a variable", "Deployment", "shop", previous, label, []any{"spec", "template", "spec", "containers", int64(0), "env", int64(0), "value"}, false, false},
		{"the content of a ConfigMap", "ConfigMap", "shop", previous, label, password, false, false},
		{"the component's own", "Secret", "shop", own, label, password, false, false},
		{"the component's own, and the record is lost", "Secret", "shop", own, label, password, true, true},
		{"without a label", "Secret", "shop", previous, "", password, false, false},
		{"without an owner", "Secret", "shop", "", label, password, false, false},
		{"of another name", "Secret", "shop", "example.com/Widget/shop/other/before", label, password, false, false},
		{"of another kind", "Secret", "shop", "example.com/Gadget/shop/main/before", label, password, false, false},
		{"a copy of one in another namespace", "Secret", "shop", "example.com/Widget/market/main/before", label, password, false, true},
		{"one of another namespace", "Secret", "market", "example.com/Widget/market/main/before", label, password, false, false},
		{"an owner that is no owner", "Secret", "shop", "main", label, password, false, false},
	} {
		r := Renderer{Self: &identity.Operator{Name: "shop.example.com", Kind: schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Widget"}}}
		request := Request{Component: now{}}
		live := &unstructured.Unstructured{Object: map[string]any{}}
		live.SetNamespace(test.namespace)
		live.SetAnnotations(map[string]string{"shop.example.com/owner": test.owner})
		live.SetLabels(map[string]string{test.label: "some-id"})
		version := map[string]string{"Secret": "v1", "ConfigMap": "v1"}[test.kind]
		if version == "" {
			version = "apps/v1"
		}
		value := randomValue{Object: objectID{objectGroup{version, test.kind, test.namespace}, "core"}, Path: test.path, Value: "new"}
		check.SameNamed(t, test.name, test.want, r.mayCarry(request, value, live, test.lost))
	}
}

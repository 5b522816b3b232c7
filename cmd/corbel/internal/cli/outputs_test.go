// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"github.com/corbel-run/corbel/test/check"
)

// publishing is a Shop with outputs, and with names of secret ones.
func publishing(name string, outputs map[string]any, secrets ...any) *unstructured.Unstructured {
	shop := explained(name, "True", "Ready", "all is well").(*unstructured.Unstructured)
	status := shop.Object["status"].(map[string]any)
	status["outputs"], status["secretOutputs"] = outputs, secrets
	return shop
}

func TestOutputs(t *testing.T) {
	secret := func(name string, data map[string][]byte) client.Object {
		return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: name}, Data: data}
	}
	objects := []client.Object{
		publishing("corner", map[string]any{"host": "it's here", "2-ports": "80\n443"}, "password"), secret("corner-outputs", map[string][]byte{"password": []byte("a\x1b$'b")}),
		publishing("main", map[string]any{"admin-url": "https://main; rm -rf /", "host": "main"}, "password"), secret("main-outputs", map[string][]byte{"password": []byte("it's $secret")}),
		publishing("twins", map[string]any{"a-b": "1", "a_b": "2"}), publishing("late", nil, "password"), secret("late-outputs", nil),
		publishing("none", nil), publishing("lost", nil, "password"),
	}
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	var text strings.Builder
	for _, line := range []string{
		"shop/corner", "shop/corner -o table --show-secrets", "shop/corner -o json", "shop/corner -o json --show-secrets", "shop/corner -o yaml", "shop/corner -o env",
		"shop/main", "shop/main -o env", "shop/main -o env --show-secrets", "shop/twins -o env",
		"shop/none", "shop/none -o env --show-secrets", "shop/none -o json", "shop/late --show-secrets", "shop/lost", "shop/lost --show-secrets", "shop/corner -o xml", "",
	} {
		got := offline(t, server, served(shopResource), nil, append([]string{"outputs"}, strings.Fields(line)...)...)
		text.WriteString("$ corbel outputs " + line + "\n" + got.text() + "\n")
	}
	golden(t, "outputs", text.String())
}

func TestATreeHasWhatIsRequiredAndTheOutputs(t *testing.T) {
	requiring := func(shop client.Object, names ...string) client.Object {
		var requires []any
		for _, name := range names {
			requires = append(requires, map[string]any{"apiVersion": "shop.example.com/v1alpha1", "kind": "Shop", "name": name, "inputs": map[string]any{"parent.host": "host"}})
		}
		shop.(*unstructured.Unstructured).Object["spec"] = map[string]any{"requires": requires}
		return shop
	}
	objects := append(withDependents("fleet", "corner", "registry.example.com/shop:1.1", true),
		publishing("main", map[string]any{"host": "main.example.com"}), explained("late", "Unknown", "Processing", "Deployment fleet/late: 0 of 1 replicas ready"),
		requiring(publishing("alone", nil), "main"))
	status := requiring(objects[0], "main", "late", "gone").(*unstructured.Unstructured).Object["status"].(map[string]any)
	status["outputs"], status["secretOutputs"] = map[string]any{"host": "corner.example.com", "replicas": "3\n\x1b"}, []any{"password"}
	server := fake.NewClientBuilder().WithScheme(scheme.Scheme).WithObjects(objects...).Build()
	var text strings.Builder
	for _, line := range []string{"tree shop/corner", "tree shop/corner -o yaml", "tree shop/alone", "tree shop/main"} {
		got := offline(t, server, served(shopResource), nil, strings.Fields(line)...)
		check.Same(t, 0, got.code)
		text.WriteString("$ corbel " + line + "\n" + got.text() + "\n")
	}
	golden(t, "tree requirements", text.String())
}

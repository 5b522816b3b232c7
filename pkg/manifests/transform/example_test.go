// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package transform_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/api/v1alpha1"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/transform"
	"github.com/corbel-run/corbel/pkg/types"
)

// settings is a generator of an object that shows its parameters.
var settings = manifests.GeneratorFunc(func(_ context.Context, _, name string, parameters types.Unstructurable) ([]client.Object, error) {
	size := fmt.Sprint(parameters.ToUnstructured()["size"])
	return []client.Object{&corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{"size": size, "host": "${HOST}"}},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
	}}, nil
})

func show(transformer manifests.Transformer, err error) {
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifests.Generate(context.Background(), manifests.Transform(settings, transformer), "default", "shop", types.UnstructurableMap{"size": 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(objects[0].GetName(), objects[0].GetLabels(), objects[0].GetAnnotations())
}

// Patches and images are written as in a kustomization.
func Example() {
	transformer, err := transform.Patches(
		[]v1alpha1.Patch{{Target: &v1alpha1.PatchTarget{Kind: "Pod"}, Patch: "metadata:\n  labels: {team: shop}\n"}},
		[]v1alpha1.Image{{Name: "web", NewTag: "2"}},
	)
	show(manifests.WithObjectTransformer(transformer), err)
	// Output: shop map[team:shop] map[host:${HOST} size:1]
}

func ExampleLabels() {
	show(manifests.WithObjectTransformer(transform.Labels(map[string]string{"team": "shop"})), nil)
	// Output: shop map[team:shop] map[host:${HOST} size:1]
}

func ExampleAnnotations() {
	show(manifests.WithObjectTransformer(transform.Annotations(map[string]string{"size": "9"})), nil)
	// Output: shop map[] map[host:${HOST} size:9]
}

func ExampleSubstitute() {
	transformer, err := transform.Substitute(map[string]string{"HOST": "shop.example.org"}, nil)
	show(manifests.WithObjectTransformer(transformer), err)
	// Output: shop map[] map[host:shop.example.org size:1]
}

// An expression can change objects, and parameters as well.
func ExampleCEL() {
	objects, err := transform.CEL(`{"metadata": {"labels": {"containers": string(size(self.spec.containers))}}}`, nil)
	show(manifests.WithObjectTransformer(objects), err)
	parameters, err := transform.CEL(`{"size": self.size + 1}`, nil)
	show(manifests.WithParameterTransformer(parameters), err)
	// Output:
	// shop map[containers:1] map[host:${HOST} size:1]
	// shop map[] map[host:${HOST} size:2]
}

func ExampleJSONPatch() {
	transformer, err := transform.JSONPatch("- {op: replace, path: /size, value: 5}")
	show(manifests.WithParameterTransformer(transformer), err)
	// Output: shop map[] map[host:${HOST} size:5]
}

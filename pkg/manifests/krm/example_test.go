// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/krm"
	"github.com/corbel-run/corbel/pkg/types"
)

// A function in sh makes an object, with the parameters as its configuration.
func Example() {
	generator, err := krm.NewGenerator(krm.Function{Path: "/bin/sh", Args: []string{"-c", `
		size=$(sed -n 's/^    size: *//p')
		cat <<END
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: v1
  kind: ConfigMap
  metadata: {name: settings}
  data: {size: "$size"}
END`}})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", types.UnstructurableMap{"size": "large"})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(len(objects), objects[0].(interface{ UnstructuredContent() map[string]any }).UnstructuredContent())
	// Output: 1 map[apiVersion:v1 data:map[size:large] kind:ConfigMap metadata:map[name:settings]]
}

// A function in sh changes the objects of another generator.
func ExampleNewTransformer() {
	settings := manifests.GeneratorFunc(func(_ context.Context, _, name string, _ types.Unstructurable) ([]client.Object, error) {
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"size": "small"}}}, nil
	})
	transformer, err := krm.NewTransformer(krm.Function{Path: "/bin/sh", Args: []string{"-c", "sed 's/size: small/size: large/'"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	generator := manifests.Transform(settings, manifests.WithObjectTransformer(transformer))
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(objects[0].(interface{ UnstructuredContent() map[string]any }).UnstructuredContent()["data"])
	// Output: map[size:large]
}

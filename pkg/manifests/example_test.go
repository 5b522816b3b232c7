// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// Plain YAML from a folder, usually an embed.FS, joined with an object made in
// Go; every object gets a label.
func Example() {
	fsys := fstest.MapFS{"manifests/account.yaml": {Data: []byte("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: shop\n")}}
	static, err := manifests.FromFS(fsys, "manifests")
	if err != nil {
		fmt.Println(err)
		return
	}
	settings := manifests.GeneratorFunc(func(_ context.Context, _, name string, parameters types.Unstructurable) ([]client.Object, error) {
		size := fmt.Sprint(parameters.ToUnstructured()["size"])
		return []client.Object{&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name + "-settings"}, Data: map[string]string{"size": size}}}, nil
	})
	label := manifests.ObjectTransformerFunc(func(_, name string, objects []client.Object) ([]client.Object, error) {
		for _, object := range objects {
			object.SetLabels(map[string]string{"app.kubernetes.io/instance": name})
		}
		return objects, nil
	})

	generator := manifests.Transform(manifests.Join(static, settings), manifests.WithObjectTransformer(label))
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", types.UnstructurableMap{"size": 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		fmt.Println(object.GetName(), object.GetLabels())
	}
	// Output:
	// shop map[app.kubernetes.io/instance:shop]
	// shop-settings map[app.kubernetes.io/instance:shop]
}

// A mistake in a file is reported with its line; the generator stays usable and
// reports it again, so that it shows in the condition of every component.
func ExampleFromFS() {
	fsys := fstest.MapFS{"a.yaml": {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: 5\n")}}
	generator, err := manifests.FromFS(fsys, ".")
	fmt.Println(err)
	_, err = manifests.Generate(context.Background(), generator, "default", "shop", nil)
	fmt.Println(err)
	// Output:
	// a.yaml: document 1, line 4: metadata.name is a number, want a string; put it into quotes
	// a.yaml: document 1, line 4: metadata.name is a number, want a string; put it into quotes
}

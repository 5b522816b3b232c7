// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests_test

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/types"
)

// untrusted takes more and more memory if it is asked for it.
var untrusted = manifests.GeneratorFunc(func(_ context.Context, _, name string, parameters types.Unstructurable) ([]client.Object, error) {
	var taken [][]byte
	for parameters.ToUnstructured()["greedy"] == true {
		block := make([]byte, 1<<20)
		for i := range block {
			block[i] = 1
		}
		taken = append(taken, block)
	}
	object := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"taken": fmt.Sprint(len(taken))}}
	return []client.Object{object}, nil
})

// It is made whenever the program starts.
var guarded = manifests.Isolated(untrusted, manifests.Isolation{Name: "untrusted", MemoryBytes: 128 << 20})

// A generator that takes all memory ends its own process, not the operator. The
// main function (in tests: TestMain) starts with a call of RunIsolated.
func ExampleIsolated() {
	objects, err := manifests.Generate(context.Background(), guarded, "default", "shop", types.UnstructurableMap{})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(objects[0].GetName())

	_, err = manifests.Generate(context.Background(), guarded, "default", "shop", types.UnstructurableMap{"greedy": true})
	fmt.Println(err)
	// Output:
	// shop
	// isolated generator "untrusted": it needed more memory than it may have: 128 MiB
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

// An overlay with a kustomization that is a template. The files are usually an
// embed.FS.
func Example() {
	fsys := fstest.MapFS{
		"base/settings.yaml":         {Data: []byte("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: settings\ndata:\n  size: small\n")},
		"base/kustomization.yaml":    {Data: []byte("resources: [settings.yaml]\n")},
		"overlay/kustomization.yaml": {Data: []byte("resources: [../base]\nnamePrefix: '{{ .Name }}-'\nlabels:\n- pairs: {size: '{{ .Values.size }}'}\n")},
	}
	generator, err := kustomize.New(fsys, "overlay", kustomize.Options{Templates: &kustomize.Templates{}})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", types.UnstructurableMap{"size": "large"})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		fmt.Println(object.GetName(), object.GetLabels())
	}
	// Output: shop-settings map[size:large]
}

// What leads to another machine is refused before anything is built.
func ExampleNew_remote() {
	fsys := fstest.MapFS{"kustomization.yaml": {Data: []byte("resources:\n- https://example.org/install.yaml\n")}}
	_, err := kustomize.New(fsys, ".", kustomize.Options{})
	fmt.Println(err)
	// Output: kustomization.yaml: resources[0]: "https://example.org/install.yaml": it leads to another machine, and nothing is fetched; put a copy below the root
}

// Files are decrypted when they are read. This one undoes base64 in place of a
// real cipher.
func ExampleOptions_decryptor() {
	secret := base64.StdEncoding.EncodeToString([]byte("apiVersion: v1\nkind: Secret\nmetadata:\n  name: login\n"))
	fsys := fstest.MapFS{"login.yaml": {Data: []byte("encrypted:" + secret)}}
	decryptor := manifests.DecryptorFunc(func(input []byte, path string) ([]byte, error) {
		encrypted, ok := bytes.CutPrefix(input, []byte("encrypted:"))
		if !ok {
			return input, nil
		}
		return base64.StdEncoding.DecodeString(string(encrypted))
	})
	generator, err := kustomize.New(fsys, ".", kustomize.Options{Decryptor: decryptor})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", nil)
	fmt.Println(objects[0].GetName(), err)
	// Output: login <nil>
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/helm"
	"github.com/corbel-run/corbel/pkg/types"
)

// In an operator, the file system is an embed.FS or os.DirFS.
func ExampleNew() {
	charts := fstest.MapFS{
		"web/Chart.yaml":  {Data: []byte("apiVersion: v2\nname: web\nversion: 1.0.0\n")},
		"web/values.yaml": {Data: []byte("replicas: 1\n")},
		"web/templates/web.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ .Release.Name }}-web
spec:
  replicas: {{ .Values.replicas }}
`)},
	}
	generator, err := helm.New(charts, "web", helm.Options{})
	if err != nil {
		panic(err)
	}
	objects, err := manifests.Generate(context.Background(), generator, "prod", "shop", types.UnstructurableMap{"replicas": 3})
	if err != nil {
		panic(err)
	}
	for _, object := range objects {
		fmt.Println(object.GetObjectKind().GroupVersionKind().Kind, object.GetName())
	}
	// Output:
	// Deployment shop-web
}

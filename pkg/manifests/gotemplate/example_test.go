// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package gotemplate_test

import (
	"context"
	"fmt"
	"testing/fstest"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
	"github.com/corbel-run/corbel/pkg/types"
)

// The templates usually come from an embed.FS.
func Example() {
	templates := fstest.MapFS{
		"templates/_names.tpl": {Data: []byte(`{{ define "fullname" }}{{ .Release.Name }}-web{{ end }}`)},
		"templates/web.yaml": {Data: []byte(`apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "fullname" . }}
spec:
  replicas: {{ .Values.replicas | default 1 }}
`)},
	}
	generator, err := gotemplate.New(templates, "templates", gotemplate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	objects, err := manifests.Generate(context.Background(), generator, "default", "shop", types.UnstructurableMap{"replicas": 3})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, object := range objects {
		replicas, _, _ := unstructured.NestedInt64(object.(*unstructured.Unstructured).Object, "spec", "replicas")
		fmt.Println(object.GetName(), replicas)
	}
	// Output: shop-web 3
}

// Mistakes are reported with their place, those in templates when they are
// parsed and those in what they give when they are rendered.
func ExampleNew() {
	_, err := gotemplate.New(fstest.MapFS{"a.yaml": {Data: []byte("kind: {{ .Values.kind \n")}}, ".", gotemplate.Options{})
	fmt.Println(err)
	generator, _ := gotemplate.New(fstest.MapFS{"b.yaml": {Data: []byte("kind: A\nmetadata:\n  name: {{ .Values.name }}: x\n")}}, ".", gotemplate.Options{})
	_, err = manifests.Generate(context.Background(), generator, "default", "shop", types.UnstructurableMap{"name": "a"})
	fmt.Println(err)
	// Output:
	// a.yaml:2: unclosed action started at a.yaml:1
	// b.yaml (rendered): document 1, line 3: mapping values are not allowed in this context
}

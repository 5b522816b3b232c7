// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"context"
	"strings"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
	"github.com/corbel-run/corbel/pkg/types"
)

func folder(files map[string]string) fstest.MapFS {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return fsys
}

func configMap(name string) string {
	return "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: " + name + "\n"
}

// generate makes a generator and calls it.
func generate(ctx context.Context, files map[string]string, root string, options kustomize.Options, values map[string]any) ([]client.Object, error) {
	g, err := kustomize.New(folder(files), root, options)
	if err != nil {
		return nil, err
	}
	return manifests.Generate(ctx, g, "ns", "app", types.UnstructurableMap(values))
}

func names(objects []client.Object) string {
	var all []string
	for _, object := range objects {
		all = append(all, object.GetName())
	}
	return strings.Join(all, " ")
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package desired

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// kubePrometheus lies beside the repository, because it is not ours.
const kubePrometheus = "../../../../../shared/testdata/kube-prometheus/manifests"

// load reads all manifests below a folder.
func load(t *testing.T, folder string) (objects []client.Object, elements int) {
	t.Helper()
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		decoder := yaml.NewYAMLOrJSONDecoder(file, 4096)
		for {
			obj := &unstructured.Unstructured{}
			if err := decoder.Decode(&obj.Object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
			objects = append(objects, obj)
			items, isList := obj.Object["items"].([]any)
			if isList {
				elements += len(items)
			} else {
				elements++
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return objects, elements
}

func TestKubePrometheus(t *testing.T) {
	if _, err := os.Stat(kubePrometheus); err != nil {
		t.Skipf("the manifests of kube-prometheus are not beside the repository, at %s from this package", kubePrometheus)
	}
	objects, elements := load(t, kubePrometheus)
	if elements <= len(objects) {
		t.Errorf("there are no lists among the %d manifests", len(objects))
	}
	in := input(objects...)
	in.Resolve = func(_ context.Context, gvk schema.GroupVersionKind) (namespaced, served bool, err error) {
		if gvk.Group == "monitoring.coreos.com" {
			return false, false, nil // the definitions are among the manifests
		}
		return !cascadingKinds[gvk.GroupKind()] && !strings.HasPrefix(gvk.Kind, "Cluster"), true, nil
	}
	built := build(t, in)
	if len(built) != elements {
		t.Errorf("%d manifests hold %d objects, %d were built", len(objects), elements, len(built))
	}
	checkPromises(t, built)
	instances := 0
	for _, object := range built {
		if strings.HasSuffix(object.Key.Kind, "List") {
			t.Errorf("%s was not flattened", object.Key)
		}
		if object.Key.Group == "monitoring.coreos.com" {
			instances++
			if object.Key.Namespace != "monitoring" {
				t.Errorf("%s is not in its namespace", object.Key)
			}
		}
	}
	if instances == 0 {
		t.Error("there are no instances of custom types")
	}
	t.Logf("%d objects, %d of them instances of custom types", len(built), instances)
}

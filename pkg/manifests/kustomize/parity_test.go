// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/kustomize/kyaml/openapi"

	"github.com/corbel-run/corbel/internal/document"
)

func TestWhatIsBuiltEqualsWhatTheLibraryBuildsOnDisk(t *testing.T) {
	folders := foldersIn(t, "testdata/parity")
	if len(folders) < 20 {
		t.Errorf("only %d kustomizations to compare", len(folders))
	}
	for _, folder := range folders {
		t.Run(folder, func(t *testing.T) {
			want, err := onDisk(filepath.Join("testdata/parity", folder))
			if err != nil {
				t.Fatal(err)
			}
			got, err := inMemory(treeOf(t, "testdata/parity"), folder)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-on disk +in memory:\n%s", diff)
			}
		})
	}
}

// foldersIn returns the folders with a kustomization, relative to the root.
func foldersIn(t *testing.T, root string) []string {
	t.Helper()
	var folders []string
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		for _, known := range konfig.RecognizedKustomizationFileNames() {
			if err == nil && !entry.IsDir() && entry.Name() == known {
				folders = append(folders, path.Dir(name))
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return folders
}

func treeOf(t *testing.T, root string) *tree {
	t.Helper()
	osRoot, err := os.OpenRoot(root)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = osRoot.Close() }()
	all, err := readTree(osRoot.FS(), Options{FollowSymlinks: true, Limits: Limits{TotalBytes: 1 << 30}})
	if err != nil {
		t.Log(err)
	}
	return all
}

func inMemory(all *tree, folder string) ([]*unstructured.Unstructured, error) {
	limits := Options{}.complete().Limits
	plan, err := check(all, folder, limits)
	if err != nil {
		return nil, err
	}
	built, _, err := build(context.Background(), plan, limits)
	return built, err
}

// onDisk returns what the YAML that the library builds is for a client.
func onDisk(folder string) (built []*unstructured.Unstructured, err error) {
	defer func() {
		if value := recover(); value != nil {
			err = fmt.Errorf("panic: %v", value)
		}
	}()
	defer openapi.ResetOpenAPI()
	resources, err := krusty.MakeKustomizer(krustyOptions()).Run(filesys.MakeFsOnDisk(), folder)
	if err != nil {
		return nil, err
	}
	data, err := resources.AsYaml()
	if err != nil {
		return nil, err
	}
	return document.Decode(folder, data)
}

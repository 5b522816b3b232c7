// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

// Every one of them is an error that names the place; none ends the process.
func TestFoldersThatAreNone(t *testing.T) {
	files := map[string]string{"a/kustomization.yaml": "resources: [x.yaml]", "a/x.yaml": configMap("x")}
	for root, want := range map[string]string{
		"../a": `folder "../a": it leads out of the root`, "/a": `folder "/a": it leads out of the root`, "a/../../b": `folder "../b": it leads out of the root`,
		"b": `folder "b": file does not exist`, "a/x.yaml": `folder "a/x.yaml": file does not exist`, "a\x00": "folder", "a\n": "folder",
	} {
		_, err := generate(t.Context(), files, root, kustomize.Options{}, nil)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got the error %v, want %q", root, err, want)
		}
	}
	if _, err := kustomize.New(nil, ".", kustomize.Options{}); err == nil || !strings.Contains(err.Error(), "the file system is nil") {
		t.Errorf("got the error %v", err)
	}
}

// A matcher that backtracks would not come back from these.
func TestIgnoreFilesAreMatchedInLimitedTime(t *testing.T) {
	pattern := strings.Repeat("**/", 200) + strings.Repeat("*a", 50) + "b\n"
	name := strings.Repeat("a/", 100) + strings.Repeat("a", 200) + ".yaml"
	objects, err := generate(t.Context(), map[string]string{".corbelignore": strings.Repeat(pattern, 20), name: configMap("a")}, ".", kustomize.Options{}, nil)
	if err != nil || names(objects) != "a" {
		t.Errorf("got %v, %v", objects, err)
	}
	_, err = generate(t.Context(), map[string]string{".corbelignore": strings.Repeat("x\n", 1001), "a.yaml": configMap("a")}, ".", kustomize.Options{}, nil)
	if err == nil || !strings.Contains(err.Error(), "more than 1000 rules") {
		t.Errorf("got the error %v", err)
	}
}

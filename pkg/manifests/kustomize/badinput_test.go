// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize_test

import (
	"strings"
	"testing"

	"github.com/corbel-run/corbel/pkg/manifests/gotemplate"
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

func TestOtherLineEndsAndLongLinesAreRead(t *testing.T) {
	long := strings.Repeat("x", 1_000_000)
	objects, err := generate(t.Context(), map[string]string{
		"kustomization.yaml": "\ufeffresources:\r\n- a.yaml\r\n", "a.yaml": strings.ReplaceAll(configMap("a"), "\n", "\r\n") + "data:\r\n  long: " + long + "\r\n",
	}, ".", kustomize.Options{}, nil)
	if err != nil || len(objects) != 1 || contentOf(objects[0])["data"].(map[string]any)["long"] != long {
		t.Errorf("got %d objects, error %.300v", len(objects), err)
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

func TestMistakesInTemplatesNameTheFile(t *testing.T) {
	for text, want := range map[string]string{
		`{{ readFile "../../../../etc/passwd" }}`: "there is no file",
		`{{ readFile "/etc/passwd" }}`:            "there is no file",
		`{{ .Values.x`:                            "a.yaml:1: unclosed action",
	} {
		_, err := generate(t.Context(), map[string]string{"a.yaml": text}, ".", kustomize.Options{Templates: &kustomize.Templates{}}, nil)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "a.yaml") {
			t.Errorf("%s: got the error %.300v, want %q", text, err, want)
		}
	}
	_, err := generate(t.Context(), map[string]string{"a.yaml": configMap("a")}, ".",
		kustomize.Options{Templates: &kustomize.Templates{Options: gotemplate.Options{LeftDelimiter: "[[", RightDelimiter: "[["}}}, nil)
	if err == nil || !strings.Contains(err.Error(), "left and right must differ") {
		t.Errorf("got the error %v", err)
	}
}

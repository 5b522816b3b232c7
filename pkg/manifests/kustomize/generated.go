// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"
)

// withKustomization adds a kustomization to the folder if it has none. It is
// false if there is nothing at all to list in it.
func (t *tree) withKustomization(folder string, ignored ignoreRules) (*tree, bool, error) {
	if len(t.kustomizationFiles(folder)) > 0 {
		return t, true, nil
	}
	resources := t.resources(folder, ignored)
	if len(resources) == 0 {
		return t, false, nil
	}
	data, err := yaml.Marshal(map[string]any{
		"apiVersion": types.KustomizationVersion, "kind": types.KustomizationKind, "resources": resources,
	})
	if err != nil {
		return nil, false, err
	}
	name := path.Join(folder, konfig.DefaultKustomizationFileName())
	return t.with(map[string][]byte{name: data}), true, nil
}

// resources returns what a generated kustomization lists, relative to its folder.
func (t *tree) resources(folder string, ignored ignoreRules) []string {
	prefix := folder + "/"
	if folder == "." {
		prefix = ""
	}
	found := map[string]bool{}
	for name := range t.irregular {
		if below, inside := strings.CutPrefix(name, prefix); inside && isManifest(below) && !ignored.ignores(name) {
			if _, ok := t.ownKustomization(folder, below); !ok {
				found[below] = true // the look at it says why it cannot be read
			}
		}
	}
	for name, data := range t.files {
		below, inside := strings.CutPrefix(name, prefix)
		if !inside || ignored.ignores(name) {
			continue
		}
		if own, ok := t.ownKustomization(folder, below); ok {
			// Its files are not ours, but an ignored kustomization is nobody's.
			if !ignored.ignores(path.Join(folder, own)) {
				found[own] = true
			}
			continue
		}
		if isManifest(below) && holdsContent(data) {
			found[below] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// ownKustomization returns the highest folder above the file that has a
// kustomization of its own.
func (t *tree) ownKustomization(folder, below string) (string, bool) {
	segments := strings.Split(below, "/")
	for end := 1; end < len(segments); end++ {
		own := strings.Join(segments[:end], "/")
		if len(t.kustomizationFiles(path.Join(folder, own))) > 0 {
			return own, !isHidden(own)
		}
	}
	return "", false
}

// isManifest reports whether a file is one that a generated kustomization lists.
func isManifest(below string) bool {
	extension := strings.ToLower(path.Ext(below))
	return (extension == ".yaml" || extension == ".yml") && !isHidden(below)
}

func isHidden(below string) bool {
	for _, segment := range strings.Split(below, "/") {
		if strings.HasPrefix(segment, ".") {
			return true
		}
	}
	return false
}

// holdsContent is false for files with nothing but blanks, comments and
// separators, which templates often leave.
func holdsContent(data []byte) bool {
	for _, line := range bytes.Split(data, []byte("\n")) {
		text := bytes.TrimSpace(line)
		if len(text) > 0 && text[0] != '#' && !bytes.Equal(text, []byte("---")) {
			return true
		}
	}
	return false
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"io/fs"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
)

// checkedFiles shows a tree to the library, as a file system that cannot be written.
// In it, the root of the tree is "/".
type checkedFiles struct {
	filesys.FileSystem // nil: the library calls no other method
	tree               *tree
	// kustomizations are the approved kustomizations. The library sees no other ones.
	kustomizations map[string][]byte
}

// name returns the path in the tree.
func (checkedFiles) name(p string) string {
	if name := strings.TrimPrefix(path.Clean("/"+p), "/"); name != "" {
		return name
	}
	return "."
}

func (m checkedFiles) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	name := m.name(p)
	if m.tree.folders[name] {
		return filesys.ConfirmedDir(path.Clean("/" + name)), "", nil
	}
	if _, ok := m.tree.files[name]; !ok {
		return "", "", &fs.PathError{Op: "open", Path: p, Err: m.tree.missing(name)}
	}
	return filesys.ConfirmedDir(path.Dir("/" + name)), path.Base(name), nil
}

func (m checkedFiles) ReadFile(p string) ([]byte, error) {
	name, raw := strings.CutSuffix(m.name(p), rawSuffix)
	data, ok := m.tree.files[name]
	if !raw && isKustomization(name) {
		data, ok = m.kustomizations[name]
	}
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: p, Err: m.tree.missing(name)}
	}
	// The library may keep and change the data.
	return slices.Clone(data), nil
}

// rawSuffix identifies the path of a kustomization that is requested as data. No file is
// called like this.
const rawSuffix = "\x00"

// approve keeps the kustomization for the build, in the form in which it was looked at. It is the
// second barrier against other machines: the library sees no kustomization that was not approved,
// and all paths in the approved ones start with a dot, so that the library treats none of them as a
// URL or a repository, also if the look at them was wrong.
func (c *checker) approve(at fieldRef, k *types.Kustomization) {
	eachField(k, func(_ string, kind fieldKind, value *string) {
		switch {
		case *value == "" || kind == literalField || kind.holdsText(*value):
		case kind == keyedField:
			key, p, keyed := strings.Cut(*value, "=")
			if !keyed {
				key, p = path.Base(*value), *value
			}
			*value = key + "=" + c.local(at.folder, p)
		default:
			*value = c.local(at.folder, *value)
		}
	})
	data, err := yaml.Marshal(k)
	if err != nil {
		c.fail(at, "", err)
		return
	}
	if read := (types.Kustomization{}); k.CheckEmpty() == nil && read.Unmarshal(data) == nil && read.CheckEmpty() != nil {
		// The text has lost an empty field, without which the library refuses the kustomization.
		data = append([]byte("resources: []\n"), bytes.TrimPrefix(data, []byte("{}\n"))...)
	}
	c.approved[at.file] = data
}

// local returns a path that the library treats as the path of a file.
func (c *checker) local(folder, p string) string {
	if _, isFile := c.tree.files[path.Join(folder, p)]; isFile && isKustomization(p) {
		p += rawSuffix
	}
	if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
		return p
	}
	return "./" + p
}

func isKustomization(p string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(p))
}

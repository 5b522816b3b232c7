// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/kyaml/filesys"
)

// memory shows a tree to the library, as a file system that cannot be written.
// In it, the root of the tree is "/".
type memory struct {
	tree *tree
	// kustomizations are those that were approved. The library sees no others.
	kustomizations map[string][]byte
}

var _ filesys.FileSystem = memory{}

// name returns the path in the tree.
func (memory) name(p string) string {
	if name := strings.TrimPrefix(path.Clean("/"+p), "/"); name != "" {
		return name
	}
	return "."
}

func (m memory) IsDir(p string) bool { return m.tree.folders[m.name(p)] }

func (m memory) Exists(p string) bool {
	_, isFile := m.tree.files[m.name(p)]
	return isFile || m.IsDir(p)
}

func (m memory) CleanedAbs(p string) (filesys.ConfirmedDir, string, error) {
	name := m.name(p)
	if m.tree.folders[name] {
		return filesys.ConfirmedDir(path.Clean("/" + name)), "", nil
	}
	if _, ok := m.tree.files[name]; !ok {
		return "", "", &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	return filesys.ConfirmedDir(path.Dir("/" + name)), path.Base(name), nil
}

func (m memory) ReadFile(p string) ([]byte, error) {
	name, raw := strings.CutSuffix(m.name(p), asItIs)
	data, ok := m.tree.files[name]
	if !raw && isKustomization(name) {
		data, ok = m.kustomizations[name]
	}
	if !ok {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	// The library may keep and change what it gets.
	return slices.Clone(data), nil
}

func (m memory) ReadDir(p string) ([]string, error) {
	folder := m.name(p)
	if !m.tree.folders[folder] {
		return nil, &fs.PathError{Op: "open", Path: p, Err: fs.ErrNotExist}
	}
	var names []string
	for name := range m.tree.files {
		if path.Dir(name) == folder {
			names = append(names, path.Base(name))
		}
	}
	for name := range m.tree.folders {
		if name != "." && path.Dir(name) == folder {
			names = append(names, path.Base(name))
		}
	}
	slices.Sort(names)
	return names, nil
}

// errUnsupported is what a build gets that wants to do what no build does.
var errUnsupported = errors.New("files can only be read")

func (memory) Create(string) (filesys.File, error)  { return nil, errUnsupported }
func (memory) Open(string) (filesys.File, error)    { return nil, errUnsupported }
func (memory) Mkdir(string) error                   { return errUnsupported }
func (memory) MkdirAll(string) error                { return errUnsupported }
func (memory) RemoveAll(string) error               { return errUnsupported }
func (memory) WriteFile(string, []byte) error       { return errUnsupported }
func (memory) Glob(string) ([]string, error)        { return nil, errUnsupported }
func (memory) Walk(string, filepath.WalkFunc) error { return errUnsupported }

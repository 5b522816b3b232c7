// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//lint:file-ignore SA1019 Deprecated fields are built, so they are checked.

package kustomize

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/kustomize/kyaml/filesys"
	"sigs.k8s.io/yaml"
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

// asItIs identifies the path of a kustomization that is requested as data. No file is
// called like this.
const asItIs = "\x00"

// approve keeps the kustomization for the build, in the form in which it was looked
// at. It is the second barrier against other machines: the library sees no
// kustomization that was not approved, and all paths in the others start with a dot,
// so that the library treats none of them as a URL or a repository, also if the
// look at them was wrong.
func (c *checker) approve(at place, k *types.Kustomization) {
	c.localize(at.folder, k)
	data, err := yaml.Marshal(k)
	if err != nil {
		c.add(err)
		return
	}
	if read := (types.Kustomization{}); k.CheckEmpty() == nil && read.Unmarshal(data) == nil && read.CheckEmpty() != nil {
		// The text has lost an empty field, without which the library refuses the kustomization.
		data = append([]byte("resources: []\n"), bytes.TrimPrefix(data, []byte("{}\n"))...)
	}
	c.approved[at.file] = data
}

func (c *checker) localize(folder string, k *types.Kustomization) {
	local := func(value *string) { *value = c.local(folder, *value) }
	unlessInline := func(value *string) {
		if !isInline(*value) {
			local(value)
		}
	}
	for _, paths := range [][]string{k.Resources, k.Bases, k.Components, k.Crds, k.Configurations} {
		for i := range paths {
			local(&paths[i])
		}
	}
	for _, values := range [][]string{k.Generators, k.Transformers, k.Validators} {
		for i := range values {
			unlessInline(&values[i])
		}
	}
	for i := range k.PatchesStrategicMerge {
		unlessInline((*string)(&k.PatchesStrategicMerge[i]))
	}
	for _, patches := range [][]types.Patch{k.Patches, k.PatchesJson6902} {
		for i := range patches {
			local(&patches[i].Path)
		}
	}
	for i := range k.Replacements {
		local(&k.Replacements[i].Path)
	}
	if p, ok := k.OpenAPI["path"]; ok {
		k.OpenAPI["path"] = c.local(folder, p)
	}
	for i := range k.ConfigMapGenerator {
		c.localizeSources(folder, &k.ConfigMapGenerator[i].KvPairSources)
	}
	for i := range k.SecretGenerator {
		c.localizeSources(folder, &k.SecretGenerator[i].KvPairSources)
	}
}

func (c *checker) localizeSources(folder string, s *types.KvPairSources) {
	for i, file := range s.FileSources {
		key, p, keyed := strings.Cut(file, "=")
		if !keyed {
			key, p = path.Base(file), file
		}
		s.FileSources[i] = key + "=" + c.local(folder, p)
	}
	for i := range s.EnvSources {
		s.EnvSources[i] = c.local(folder, s.EnvSources[i])
	}
	s.EnvSource = c.local(folder, s.EnvSource)
}

// local returns a path that the library treats as that of a file.
func (c *checker) local(folder, p string) string {
	if p == "" {
		return ""
	}
	if _, isFile := c.tree.files[path.Join(folder, p)]; isFile && isKustomization(p) {
		p += asItIs
	}
	if strings.HasPrefix(p, "./") || strings.HasPrefix(p, "../") {
		return p
	}
	return "./" + p
}

func isKustomization(p string) bool {
	return slices.Contains(konfig.RecognizedKustomizationFileNames(), path.Base(p))
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/corbel-run/corbel/pkg/manifests/kustomize"
)

// kustomizationFiles are the names that the file of a kustomization may have.
var kustomizationFiles = []string{"kustomization.yaml", "kustomization.yml", "Kustomization"}

// copyKustomization copies a kustomization with the files that it refers to, which may be in folders beside its own. The copy is
// the smallest folder that holds all of them; overlay is the folder of the kustomization in it, or empty. Other files are not
// copied: they would become part of the program.
func copyKustomization(from, to string) (overlay string, err error) {
	if err := checkSource(FormKustomize, from, from); err != nil {
		return "", err
	}
	start, err := realPath(from)
	if err != nil {
		return "", err
	}
	bounds, title, err := boundsOf(start)
	if err != nil {
		return "", err
	}
	relative, err := filepath.Rel(bounds, start)
	if err != nil {
		return "", err
	}
	folder := filepath.ToSlash(relative)
	c := &collector{files: map[string][]byte{}, visited: map[[2]string]bool{}}
	if c.root, err = os.OpenRoot(bounds); err != nil {
		return "", err
	}
	defer c.root.Close()
	if err := c.reference(folder, "."); err != nil {
		return "", fmt.Errorf("copy %s: %w", from, err)
	}
	whole, top := to+".whole", folder
	for name, content := range c.files {
		if err := writeFile(filepath.Join(whole, filepath.FromSlash(name)), content); err != nil && content != nil {
			return "", err
		}
		for top != "." && !strings.HasPrefix(name, top+"/") {
			top = path.Dir(top)
		}
	}
	// References that are remote, lead to nothing or out of the bounds are missing in the copy: the generator names them.
	_, err = kustomize.New(os.DirFS(whole), folder, kustomize.Options{})
	if err := errors.Join(append(c.mistakes, err)...); err != nil {
		return "", fmt.Errorf("copy %s; its root is %s:\n%w", from, title, err)
	}
	if err := os.Rename(filepath.Join(whole, filepath.FromSlash(top)), to); err != nil {
		return "", err
	}
	if relative, err = filepath.Rel(top, folder); relative != "." {
		overlay = filepath.ToSlash(relative)
	}
	return overlay, errors.Join(err, os.RemoveAll(whole))
}

// boundsOf returns the folder that a kustomization may refer to files in, and its title: the git repository of the kustomization, or
// the current folder if it holds the kustomization, or the folder of the kustomization.
func boundsOf(folder string) (bounds, title string, err error) {
	for at := folder; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			return at, "the git repository " + at, nil
		}
		if at == filepath.Dir(at) {
			break
		}
	}
	current, err := realPath(".")
	if err != nil {
		return "", "", err
	}
	if inside, err := isInside(folder, current); inside || err != nil {
		return current, "the current folder " + current + ", because there is no git repository", err
	}
	return folder, "its own folder, because it is neither in a git repository nor in the current folder (a command in a folder above may follow its references)", nil
}

// realPath returns an absolute path without links.
func realPath(name string) (string, error) {
	absolute, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(absolute)
}

// collector collects the files that a kustomization refers to.
type collector struct {
	root     *os.Root          // no link leads out of it
	files    map[string][]byte // by their paths in the root
	visited  map[[2]string]bool
	used     budget
	mistakes []error
}

// reference collects the file at a path in a folder, or the kustomization of the folder at it, with the files that they refer to. A
// text that is no such path is ignored.
func (c *collector) reference(folder, text string) error {
	name := path.Join(folder, text)
	visit := [2]string{folder, name}
	if c.visited[visit] || !filepath.IsLocal(name) {
		return nil
	}
	c.visited[visit] = true
	info, err := c.root.Stat(name)
	switch {
	case err != nil:
		if _, err := os.Stat(filepath.Join(c.root.Name(), name)); err == nil {
			c.mistake(name, errors.New("a link leads out of the root, or is absolute: put a copy in its place"))
		}
		return nil
	case info.IsDir():
		for _, file := range kustomizationFiles {
			if err := c.reference(name, file); err != nil {
				return err
			}
		}
		return nil
	case !info.Mode().IsRegular():
		c.mistake(name, errors.New("it is neither a file nor a folder"))
		return nil
	}
	if err := c.used.take(info.Size()); err != nil {
		return err
	}
	content, err := c.root.ReadFile(name)
	if err != nil {
		c.mistake(name, err)
		return nil
	}
	c.files[name] = content
	switch {
	case slices.Contains(kustomizationFiles, path.Base(name)):
		return c.references(path.Dir(name), content)
	case bytes.Contains(content, []byte("builtin")): // the apiVersion in the configuration of a plugin
		return c.references(folder, content)
	}
	return nil
}

// mistake notes why a file is not copied. An empty file takes its place if it can, so that the generator does not miss it.
func (c *collector) mistake(name string, err error) {
	if _, known := c.files[name]; !known {
		c.files[name] = nil
		c.mistakes = append(c.mistakes, fmt.Errorf("%s: %w", name, err))
	}
}

// references collects the files that texts in YAML refer to. The generator knows which texts have to be paths: here each text that is
// the path of a file counts.
func (c *collector) references(folder string, content []byte) error {
	for decoder := yaml.NewDecoder(bytes.NewReader(content)); ; {
		document := &yaml.Node{}
		if decoder.Decode(document) != nil { // the end, or a mistake that the generator names
			return nil
		}
		if err := c.nodes(folder, document); err != nil {
			return err
		}
	}
}

// nodes collects the files that the texts in a node refer to. A text is a path, a path after a key and "=", or YAML with paths.
func (c *collector) nodes(folder string, node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		_, after, _ := strings.Cut(node.Value, "=")
		err := errors.Join(c.reference(folder, node.Value), c.reference(folder, after))
		if err == nil && strings.Contains(node.Value, "\n") {
			err = c.references(folder, []byte(node.Value))
		}
		return err
	}
	for i, inner := range node.Content {
		if isKey := node.Kind == yaml.MappingNode && i%2 == 0; isKey {
			continue
		}
		if err := c.nodes(folder, inner); err != nil {
			return err
		}
	}
	return nil
}

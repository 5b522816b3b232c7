// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"sigs.k8s.io/kustomize/api/konfig"
	"sigs.k8s.io/kustomize/api/types"
	"sigs.k8s.io/yaml"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
)

// tree is a copy of a file system. Its paths are paths of fs.FS. It is not changed once it is made.
type tree struct {
	files   map[string][]byte
	folders map[string]bool
	sum     // of the files before they are decrypted
	// irregular are the entries that were not read, such as links that are not followed, and why.
	// Such an entry is an error only where a kustomization refers to it.
	irregular map[string]error
	// extents are the extents of texts, also of trees that were made from this one.
	extents *cache.Cache[document.Extent]
}

// readTree reads all files and decrypts them.
func readTree(fsys fs.FS, options Options) (*tree, error) {
	irregular := map[string]error{}
	read, err := files.Read(fsys, ".", files.Selection{
		Hidden: true, FollowSymlinks: options.FollowSymlinks, Irregular: irregular,
		MaxFileSize: options.Limits.FileBytes, MaxTotalSize: options.Limits.TotalBytes,
	})
	errs := []error{err}
	contents, left := make(map[string][]byte, len(read)), options.Limits.TotalBytes
	encrypted := make(map[string]string, len(read))
	for _, file := range read {
		encrypted[file.Path] = string(file.Data)
		plain, err := decrypt(options.Decryptor, file.Data, file.Path)
		if left -= int64(len(plain)); err == nil && left < 0 {
			err = &excess.Error{Message: fmt.Sprintf("the files have more than %d bytes together", options.Limits.TotalBytes)}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: decrypt it: %w", file.Path, err))
		}
		contents[file.Path] = plain
	}
	t := newTree(contents)
	t.irregular, t.sum = irregular, digest.OfValues(encrypted)
	return t, errors.Join(errs...)
}

func decrypt(d manifests.Decryptor, data []byte, name string) ([]byte, error) {
	if d == nil {
		return data, nil
	}
	return d.Decrypt(slices.Clone(data), name)
}

func newTree(contents map[string][]byte) *tree {
	t := &tree{
		files: contents, folders: map[string]bool{".": true},
		extents: cache.New[document.Extent](maxExtents, maxExtents),
	}
	for name := range contents {
		for folder := path.Dir(name); !t.folders[folder]; folder = path.Dir(folder) {
			t.folders[folder] = true
		}
	}
	return t
}

// missing returns why there is no file at a path: it, or a folder above it, was not read, it is a
// folder, or it does not exist.
func (t *tree) missing(name string) error {
	if t.folders[name] {
		return errors.New("it is a folder")
	}
	for at := name; at != "."; at = path.Dir(at) {
		if err := t.irregular[at]; err != nil {
			return err
		}
	}
	return fs.ErrNotExist
}

// with returns a tree in which files are replaced or added.
func (t *tree) with(contents map[string][]byte) *tree {
	merged := maps.Clone(t.files)
	maps.Copy(merged, contents)
	replaced := newTree(merged)
	replaced.extents, replaced.irregular = t.extents, t.irregular
	return replaced
}

// withKustomization adds a kustomization to the folder if it has none. It returns
// false if the folder has nothing to list.
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

// resources returns the files and folders that a generated kustomization lists, relative to its
// folder.
func (t *tree) resources(folder string, ignored ignoreRules) []string {
	prefix := folder + "/"
	if folder == "." {
		prefix = ""
	}
	found := map[string]bool{}
	for name := range t.irregular {
		if below, inside := strings.CutPrefix(name, prefix); inside && isManifest(below) && !ignored.ignores(name) {
			if _, ok := t.ownKustomization(folder, below); !ok {
				found[below] = true // the look at it reports why it cannot be read
			}
		}
	}
	for name, data := range t.files {
		below, inside := strings.CutPrefix(name, prefix)
		if !inside || ignored.ignores(name) {
			continue
		}
		if own, ok := t.ownKustomization(folder, below); ok {
			// The folder lists its own files. An ignored one is not listed.
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

// isManifest reports whether a generated kustomization lists a file.
func isManifest(below string) bool {
	extension := strings.ToLower(path.Ext(below))
	return (extension == ".yaml" || extension == ".yml") && !isHidden(below)
}

func isHidden(below string) bool { return strings.Contains("/"+below, "/.") }

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

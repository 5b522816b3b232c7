// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"runtime/debug"
	"slices"

	"github.com/corbel-run/corbel/pkg/manifests"
	"github.com/corbel-run/corbel/pkg/manifests/internal/cache"
	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
)

// tree is a copy of a file system. Its paths are those of fs.FS. It is not
// changed once it is made.
type tree struct {
	files   map[string][]byte
	folders map[string]bool
	// irregular is what was not read, such as links that are not followed, and why. That
	// is an error only where a kustomization refers to it.
	irregular map[string]error
	// extents are those of texts, also of trees that were made from this one.
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
	for _, file := range read {
		plain, err := decrypt(options.Decryptor, file.Data, file.Path)
		if left -= int64(len(plain)); err == nil && left < 0 {
			err = &LimitError{Message: fmt.Sprintf("the files have more than %d bytes together", options.Limits.TotalBytes)}
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: decrypt it: %w", file.Path, err))
		}
		contents[file.Path] = plain
	}
	t := newTree(contents)
	t.irregular = irregular
	return t, errors.Join(errs...)
}

func decrypt(d manifests.Decryptor, data []byte, name string) (plain []byte, err error) {
	if d == nil {
		return data, nil
	}
	defer func() {
		if value := recover(); value != nil {
			err = &manifests.PanicError{Value: value, Stack: debug.Stack()}
		}
	}()
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

// missing returns why nothing is at a path: it, or a folder above it, was not read, or it
// does not exist.
func (t *tree) missing(name string) error {
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

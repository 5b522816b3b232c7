// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package manifests

import (
	"context"
	"errors"
	"io/fs"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/corbel-run/corbel/internal/digest"
	"github.com/corbel-run/corbel/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
	"github.com/corbel-run/corbel/pkg/types"
)

// FromFS returns a generator that serves the objects in the *.yaml, *.yml and
// *.json files below the root, which is a folder of the file system ("." for
// all of it) or a single file. The parameters make no difference.
//
// The files are read once, here, in the order of their paths. A file may hold several documents. Files and folders with a
// name that starts with a dot are left out. Mistakes are text that does not parse or is not UTF-8, keys that are set twice,
// documents that are no objects, objects without apiVersion, kind or name, and labels and annotations that are no strings.
//
// If there are mistakes, the error lists all of them, with file, document and
// line. The generator is usable even then: it returns the same
// error whenever it is called. So the caller has the choice to stop the
// operator, or to go on and let the mistake show up at the components.
func FromFS(fsys fs.FS, root string, options ...FSOption) (Generator, error) {
	selection := files.Selection{Extensions: []string{".yaml", ".yml", ".json"}}
	for _, option := range options {
		if option != nil {
			option(&selection)
		}
	}
	read, err := files.Read(fsys, root, selection)
	errs := []error{err}
	g, contents := &static{}, map[string]string{}
	for _, file := range read {
		contents[file.Below] = string(file.Data)
		objects, err := document.Decode(file.Path, file.Data)
		g.objects = append(g.objects, objects...)
		errs = append(errs, err)
	}
	g.Sum, g.err = digest.OfValues("files", contents, selection), errors.Join(errs...)
	return g, g.err
}

// static serves objects that were read before.
type static struct {
	digest.Sum
	objects []*unstructured.Unstructured
	err     error
}

func (s *static) Generate(context.Context, string, string, types.Unstructurable) ([]client.Object, error) {
	if s.err != nil {
		return nil, s.err
	}
	objects := make([]client.Object, len(s.objects))
	for i, object := range s.objects {
		objects[i] = object.DeepCopy()
	}
	return objects, nil
}

// FSOption selects the files that FromFS reads.
type FSOption func(*files.Selection)

// Include restricts FromFS to files that match a pattern of path.Match, by the base name or, with a slash, by the
// path below the root.
func Include(patterns ...string) FSOption {
	return func(s *files.Selection) { s.Include = append(s.Include, patterns...) }
}

// Exclude leaves out files that match such a pattern. It takes precedence over Include.
func Exclude(patterns ...string) FSOption {
	return func(s *files.Selection) { s.Exclude = append(s.Exclude, patterns...) }
}

// TopLevelOnly leaves out the folders below the root.
func TopLevelOnly() FSOption {
	return func(s *files.Selection) { s.TopLevelOnly = true }
}

// FollowSymlinks reads the files that symbolic links lead to, as in mounted ConfigMaps. Otherwise a symbolic link
// is an error. Use the option only if the file system keeps links from leading out of it, as os.Root does and
// os.DirFS does not, or if you trust the author of the links.
func FollowSymlinks() FSOption {
	return func(s *files.Selection) { s.FollowSymlinks = true }
}

// MaxFileSize sets the size in bytes that no file may exceed, by default 16 MiB.
func MaxFileSize(bytes int64) FSOption {
	return func(s *files.Selection) { s.MaxFileSize = bytes }
}

// MaxTotalSize sets the size in bytes that all files together may not exceed,
// by default 64 MiB.
func MaxTotalSize(bytes int64) FSOption {
	return func(s *files.Selection) { s.MaxTotalSize = bytes }
}

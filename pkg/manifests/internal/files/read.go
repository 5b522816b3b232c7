// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"time"
)

// File is a file that was read.
type File struct {
	// Path is the path in the file system, with the root.
	Path string
	// Below is the path below the root.
	Below string
	Data  []byte
}

// Read reads the files below the root, or the root itself if it is a file, in the order of their
// paths. It goes on after a file that cannot be read; the error lists them all. Nothing to read at
// all is an error, too.
func Read(fsys fs.FS, root string, s Selection) ([]File, error) {
	if fsys == nil {
		return nil, errors.New("the file system is nil")
	}
	if root == "" {
		root = "."
	}
	root = strings.TrimSuffix(root, "/")
	if !fs.ValidPath(root) {
		return nil, fmt.Errorf("folder %q: want a slash-separated path below the root of the file system, without \"..\" and without a slash at the start", root)
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	r := &reader{fsys: fsys, root: root, selection: s}
	r.maxFile = PositiveOr(s.MaxFileSize, DefaultMaxFileSize)
	r.left = PositiveOr(s.MaxTotalSize, DefaultMaxTotalSize)
	r.maxTotal = r.left
	if err := fs.WalkDir(fsys, root, r.visit); err != nil {
		r.errs = append(r.errs, err)
	}
	if len(r.files) == 0 && len(r.errs) == 0 {
		r.errs = append(r.errs, fmt.Errorf("folder %q holds no file to read%s", root, s.extensionList()))
	}
	return r.files, errors.Join(r.errs...)
}

// PositiveOr returns the value of an option, or its default if the value is not greater than 0.
func PositiveOr[T int | int64 | time.Duration](value, fallback T) T {
	if value > 0 {
		return value
	}
	return fallback
}

type reader struct {
	fsys      fs.FS
	root      string
	selection Selection
	maxFile   int64
	maxTotal  int64
	left      int64
	files     []File
	errs      []error
}

// visit is called for the root and everything below it, in the order of names.
func (r *reader) visit(name string, entry fs.DirEntry, err error) error {
	if err != nil {
		r.errs = append(r.errs, err)
		return nil
	}
	hidden := name != r.root && r.selection.hides(path.Base(name))
	if entry.IsDir() {
		if hidden || r.selection.TopLevelOnly && name != r.root {
			return fs.SkipDir
		}
		return nil
	}
	below := path.Base(name)
	if name != r.root {
		below = strings.TrimPrefix(strings.TrimPrefix(name, r.root), "/")
	}
	if r.root == "." {
		below = name
	}
	if hidden || !r.selection.picks(below) {
		return nil
	}
	data, err := r.read(name, entry)
	switch {
	case errors.Is(err, errTotal):
		r.errs = append(r.errs, err)
		return fs.SkipAll
	case r.selection.Irregular != nil && errors.As(err, &irregularError{}):
		r.selection.Irregular[name] = err
	case err != nil:
		r.errs = append(r.errs, err)
	default:
		r.files = append(r.files, File{Path: name, Below: below, Data: data})
	}
	return nil
}

var errTotal = errors.New("the files are too large together")

// irregularError is why something was not read that is no regular file.
type irregularError struct{ error }

func (r *reader) read(name string, entry fs.DirEntry) (data []byte, err error) {
	info, err := entry.Info()
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		if !r.selection.FollowSymlinks {
			return nil, irregularError{fmt.Errorf("%s: it is a symbolic link, want a regular file", name)}
		}
		if info, err = fs.Stat(r.fsys, name); err != nil {
			return nil, irregularError{err}
		}
	}
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, irregularError{fmt.Errorf("%s: it is no regular file", name)}
	}
	file, err := Open(r.fsys, name, info)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// The size that a file system reports of a file need not be true.
	limit := min(r.maxFile, r.left)
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	size := int64(len(data))
	if size > r.maxFile {
		return nil, fmt.Errorf("%s: it is larger than %d bytes", name, r.maxFile)
	}
	if size > r.left {
		return nil, fmt.Errorf("%s: %w: more than %d bytes", name, errTotal, r.maxTotal)
	}
	r.left -= size
	return data, nil
}

// Open opens the regular file that was seen at a path. It fails if something else is there by now,
// such as a symbolic link that leads out of the file system. A folder above the file may be
// replaced, too: for folders that other users can write to while they are read there is os.Root,
// with a file system that does not leave its root.
func Open(fsys fs.FS, name string, seen fs.FileInfo) (fs.File, error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	opened, err := file.Stat()
	// Only files of the operating system are the same as themselves.
	if err == nil && os.SameFile(seen, seen) && !os.SameFile(seen, opened) {
		err = fmt.Errorf("%s: it was replaced while it was read", name)
	}
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	return file, nil
}

const (
	// DefaultMaxFileSize is the size that no file may exceed, in bytes.
	//
	// Limit: one file of a generator, unless the option MaxFileSize or Limits.FileBytes says otherwise.
	DefaultMaxFileSize = 16 << 20
	// DefaultMaxTotalSize is the size that all files together may not exceed, in bytes.
	//
	// Limit: all files of a generator, unless the option MaxTotalSize or Limits.TotalBytes says otherwise.
	DefaultMaxTotalSize = 64 << 20
)

// Selection says which files to read. Files and folders with a name that starts with
// a dot are not read, unless Hidden says so.
type Selection struct {
	// Extensions are those to read, with the dot; letters in lower case. Without
	// any, all files are read.
	Extensions []string
	// Hidden reads files and folders with a name that starts with a dot as well, but for ".git" and
	// names that start with two dots, in which mounted ConfigMaps keep their earlier and current
	// content.
	Hidden bool
	// Include and Exclude are patterns as in path.Match, for the base name or,
	// if they contain a slash, for the path below the root. Without Include,
	// everything is included. Exclude wins.
	Include, Exclude []string
	// TopLevelOnly leaves out the folders below the root.
	TopLevelOnly bool
	// FollowSymlinks reads the targets of symbolic links to files; otherwise such a link is an
	// error.
	FollowSymlinks bool
	// Irregular, if it is not nil, gets each entry that is no regular file, such as a link that is
	// not followed, with the reason why it was not read. Otherwise that is an error.
	Irregular map[string]error
	// MaxFileSize and MaxTotalSize are limits in bytes; the defaults apply if
	// they are not greater than 0.
	MaxFileSize, MaxTotalSize int64
}

func (s Selection) validate() error {
	var errs []error
	for _, pattern := range append(append([]string(nil), s.Include...), s.Exclude...) {
		if _, err := path.Match(pattern, ""); err != nil {
			errs = append(errs, fmt.Errorf("pattern %q: %w", pattern, err))
		}
	}
	return errors.Join(errs...)
}

// extensionList names the extensions, for errors.
func (s Selection) extensionList() string {
	if len(s.Extensions) == 0 {
		return ""
	}
	return " (" + strings.Join(s.Extensions, ", ") + ")"
}

// hides reports whether a file or folder with this base name is left out.
func (s Selection) hides(base string) bool {
	if s.Hidden {
		return base == ".git" || strings.HasPrefix(base, "..")
	}
	return strings.HasPrefix(base, ".")
}

// picks reports whether the file with this path below the root is to be read.
func (s Selection) picks(below string) bool {
	extension := strings.ToLower(path.Ext(below))
	selected := len(s.Extensions) == 0
	for _, e := range s.Extensions {
		selected = selected || e == extension
	}
	return selected && (len(s.Include) == 0 || matchesAny(s.Include, below)) && !matchesAny(s.Exclude, below)
}

func matchesAny(patterns []string, below string) bool {
	for _, pattern := range patterns {
		subject := below
		if !strings.Contains(pattern, "/") {
			subject = path.Base(below)
		}
		if ok, _ := path.Match(pattern, subject); ok {
			return true
		}
	}
	return false
}

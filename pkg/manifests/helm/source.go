// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package helm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"
)

// maxChart limits the size of all files of a chart together, in bytes.
const maxChart = 100 << 20

// readChart reads the files of a chart, which is a folder or a packed file. The
// names of the files are those below the chart.
func readChart(fsys fs.FS, root string) ([]*archive.BufferedFile, error) {
	if fsys == nil {
		return nil, errors.New("the file system is nil")
	}
	if root == "" {
		root = "."
	}
	if !fs.ValidPath(root) {
		return nil, fmt.Errorf("chart %q: want a slash-separated path below the root of the file system, without \"..\" and without a slash at the start", root)
	}
	info, err := fs.Stat(fsys, root)
	if err != nil {
		return nil, err
	}
	if info.IsDir() {
		return readFolder(fsys, root)
	}
	data, err := readFile(fsys, root, maxChart)
	if err != nil {
		return nil, err
	}
	return unpack(root, data)
}

// unpack reads a packed chart. The library refuses names that lead out of it.
func unpack(name string, data []byte) ([]*archive.BufferedFile, error) {
	err := inspect(data)
	var files []*archive.BufferedFile
	if err == nil {
		files, err = archive.LoadArchiveFiles(bytes.NewReader(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: it is no packed chart: %w", name, err)
	}
	return files, nil
}

// inspect refuses what the library lets pass: archives that are damaged, because it
// does not read up to the check sum, and links, which it takes for empty files.
func inspect(data []byte) error {
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	limited := &io.LimitedReader{R: unzipped, N: 2 * maxChart}
	for entries := tar.NewReader(limited); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if limited.N == 0 {
			return nil // the library says that it is too much
		}
		if err != nil {
			return err
		}
		if entry.Typeflag == tar.TypeSymlink || entry.Typeflag == tar.TypeLink {
			return fmt.Errorf("%s: it is a link", entry.Name)
		}
	}
	_, err = io.Copy(io.Discard, limited)
	if errors.Is(err, gzip.ErrHeader) {
		return nil // something else follows
	}
	return err
}

// readFolder reads the files that are not ignored. The rules of .helmignore
// count for the whole folder, unpacked sub-charts included.
func readFolder(fsys fs.FS, root string) ([]*archive.BufferedFile, error) {
	rules, err := ignored(fsys, root)
	if err != nil {
		return nil, err
	}
	files, left := []*archive.BufferedFile{}, int64(maxChart)
	err = fs.WalkDir(fsys, root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == root {
			return err
		}
		below := strings.TrimPrefix(name, root+"/")
		info, err := entry.Info()
		if err != nil {
			return err
		}
		if rules.Ignore(below, info) {
			if entry.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if entry.IsDir() {
			return nil
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s: it is a symbolic link or no regular file", name)
		}
		data, err := readFile(fsys, name, left)
		if err != nil {
			return err
		}
		left -= int64(len(data))
		files = append(files, &archive.BufferedFile{Name: below, ModTime: info.ModTime(), Data: withoutBOM(data)})
		return nil
	})
	return files, err
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

func ignored(fsys fs.FS, root string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	name := path.Join(root, ignore.HelmIgnore)
	data, err := readFile(fsys, name, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

func readFile(fsys fs.FS, name string, limit int64) (data []byte, err error) {
	file, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// What a file system says about the size of a file need not be true.
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: the chart is larger than %d bytes", name, maxChart)
	}
	return data, err
}

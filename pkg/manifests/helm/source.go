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
	"regexp"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"

	"github.com/corbel-run/corbel/pkg/manifests/internal/document"
	"github.com/corbel-run/corbel/pkg/manifests/internal/files"
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
	at, info, err := follow(fsys, root)
	if err != nil {
		return nil, fmt.Errorf("chart %q: %w", root, err)
	}
	if info.IsDir() {
		return readFolder(fsys, at)
	}
	data, err := readFile(fsys, at, info, maxChart)
	if err != nil {
		return nil, err
	}
	return unpack(root, data)
}

// unpack reads a packed chart. The library refuses names that lead out of it.
func unpack(name string, data []byte) ([]*archive.BufferedFile, error) {
	err := (&inspection{left: 2 * maxChart}).archive(data, 0)
	var files []*archive.BufferedFile
	if err == nil || errors.Is(err, errTooLarge) { // the library says so, if it is this archive
		files, err = archive.LoadArchiveFiles(bytes.NewReader(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: it is no packed chart: %w", name, err)
	}
	return files, nil
}

var (
	errTooLarge = fmt.Errorf("packed sub-charts, at all levels together, are larger than %d bytes", maxChart)
	// packedChart is the name of a packed sub-chart below its chart, and parsedFile that
	// of a file that is parsed when a chart is loaded. Both may be in an unpacked sub-chart.
	packedChart = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^/_.][^/]*\.tgz$`)
	parsedFile  = regexp.MustCompile(`^(charts/[^/]+/)*(Chart|values|requirements)\.(yaml|lock)$`)
)

// inspection looks into archives before the library does. It counts what all of them
// unpack to: the library limits each archive, and an archive may hold others.
type inspection struct{ left int64 }

// archive refuses what the library lets pass: archives that are damaged, because it
// does not read up to the check sum, and links, which it takes for empty files.
func (i *inspection) archive(data []byte, depth int) error {
	if depth > maxSubcharts {
		return fmt.Errorf("sub-charts are nested deeper than %d levels", maxSubcharts)
	}
	unzipped, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return err
	}
	limited := &counted{from: unzipped, inspection: i}
	for entries := tar.NewReader(limited); ; {
		entry, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		if entry.Typeflag == tar.TypeSymlink || entry.Typeflag == tar.TypeLink {
			return fmt.Errorf("%s: it is a link", entry.Name)
		}
		_, below, _ := strings.Cut(path.Clean(entry.Name), "/")
		if !packedChart.MatchString(below) && !parsedFile.MatchString(below) {
			continue
		}
		content, err := io.ReadAll(entries)
		if err == nil {
			err = i.file(below, content, depth)
		}
		if err != nil {
			return err
		}
	}
	_, err = io.Copy(io.Discard, limited)
	if errors.Is(err, gzip.ErrHeader) {
		return nil // something else follows
	}
	return err
}

// file looks at one file of a chart.
func (i *inspection) file(name string, data []byte, depth int) error {
	switch {
	case packedChart.MatchString(name):
		if err := i.archive(data, depth+1); err != nil {
			return fmt.Errorf("%s: it is no packed chart: %w", name, err)
		}
	case parsedFile.MatchString(name):
		if err := document.CheckAliases(data); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// counted reads as much as is left.
type counted struct {
	from       io.Reader
	inspection *inspection
}

// Read implements io.Reader.
func (c *counted) Read(buffer []byte) (int, error) {
	if c.inspection.left < 0 {
		return 0, errTooLarge
	}
	n, err := c.from.Read(buffer)
	if c.inspection.left -= int64(n); c.inspection.left < 0 {
		return n, errTooLarge
	}
	return n, err
}

func readFile(fsys fs.FS, name string, seen fs.FileInfo, limit int64) (data []byte, err error) {
	file, err := files.Open(fsys, name, seen)
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

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
	"slices"
	"strings"

	"helm.sh/helm/v4/pkg/chart/loader/archive"
	"helm.sh/helm/v4/pkg/ignore"

	"github.com/corbel-run/corbel/internal/document"
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
	if err == nil || errors.Is(err, errTooLarge) { // the library reports that, if it is this archive
		files, err = archive.LoadArchiveFiles(bytes.NewReader(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: it is no packed chart: %w", name, err)
	}
	return files, nil
}

var (
	errTooLarge = fmt.Errorf("packed sub-charts, at all levels together, are larger than %d bytes", maxChart)
	// packedChart is the name of a packed sub-chart below its chart, and parsedFile the name of a
	// file that is parsed when a chart is loaded. Both may be in an unpacked sub-chart.
	packedChart = regexp.MustCompile(`^(charts/[^/]+/)*charts/[^/_.][^/]*\.tgz$`)
	parsedFile  = regexp.MustCompile(`^(charts/[^/]+/)*(Chart|values|requirements)\.(yaml|lock)$`)
)

// inspection looks into archives before the library does. It counts the unpacked bytes of all of
// them: the library limits each archive, and an archive may hold archives.
type inspection struct{ left int64 }

// archive refuses archives that the library lets pass: archives that are damaged, because it does
// not read up to the check sum, and links, which it treats as empty files.
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
	// The size that a file system reports of a file need not be true.
	data, err = io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s: the chart is larger than %d bytes", name, maxChart)
	}
	return data, err
}

const (
	// maxEntries limits the files and folders of a chart, which links can multiply.
	//
	// Unit: files and folders
	// Limit: the files and folders of a chart.
	maxEntries = 100_000
	// maxLinks limits how many links a path goes through.
	maxLinks = 40
)

// folder is the folder of a chart that is being read.
type folder struct {
	fsys  fs.FS
	rules *ignore.Rules
	files []*archive.BufferedFile
	// entries counts the files and folders, and left is how many bytes they may still have.
	entries int
	left    int64
	// open are the paths in the file system of the folders that are being read.
	open []string
}

// readFolder reads the files that are not ignored. The rules of .helmignore
// count for the whole folder, unpacked sub-charts included. Symbolic links are
// followed, as Helm does, but not out of the file system.
func readFolder(fsys fs.FS, root string) ([]*archive.BufferedFile, error) {
	rules, err := ignored(fsys, root)
	if err != nil {
		return nil, err
	}
	f := &folder{fsys: fsys, rules: rules, left: maxChart}
	err = f.read(root, "")
	return f.files, err
}

// read reads the folder at a path in the file system, which is below the chart.
func (f *folder) read(at, below string) error {
	if slices.Contains(f.open, at) {
		return fmt.Errorf("%s: links lead in a circle to folder %s", below, at)
	}
	f.open = append(f.open, at)
	defer func() { f.open = f.open[:len(f.open)-1] }()
	entries, err := fs.ReadDir(f.fsys, at)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if err := f.entry(path.Join(at, entry.Name()), path.Join(below, entry.Name()), entry); err != nil {
			return err
		}
	}
	return nil
}

func (f *folder) entry(at, below string, entry fs.DirEntry) error {
	if f.entries++; f.entries > maxEntries {
		return fmt.Errorf("%s: the chart has more than %d files and folders", below, maxEntries)
	}
	info, err := entry.Info()
	if err != nil {
		return err
	}
	if f.rules.Ignore(below, info) {
		return nil
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		at, info, err = follow(f.fsys, at)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case errors.Is(err, errLeadsOut) && !isLoaded(below):
			return nil
		case err != nil:
			return fmt.Errorf("%s: %w", below, err)
		case f.rules.Ignore(below, info): // some rules are for folders only
			return nil
		}
	}
	if info.IsDir() {
		return f.read(at, below)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: it is no regular file", below)
	}
	data, err := readFile(f.fsys, at, info, f.left)
	if err != nil {
		return err
	}
	f.left -= int64(len(data))
	f.files = append(f.files, &archive.BufferedFile{Name: below, ModTime: info.ModTime(), Data: withoutBOM(data)})
	return nil
}

// isLoaded reports whether Helm loads a file for itself. Other files, such as a license, are there
// for templates that ask for them.
func isLoaded(below string) bool {
	first, _, _ := strings.Cut(below, "/")
	return slices.Contains([]string{
		"templates", "charts", "crds", "Chart.yaml", "Chart.lock", "values.yaml", "values.schema.json", "requirements.yaml", "requirements.lock",
	}, first)
}

var errLeadsOut = errors.New("the symbolic link leads out of the file system; put a copy in its place")

// follow returns the path that a symbolic link leads to, which has no links in it, and its file.
// The file system may follow links itself, also out of its root; it is asked for nothing but paths
// without links.
func follow(fsys fs.FS, name string) (string, fs.FileInfo, error) {
	for range maxLinks {
		link, rest, info, err := firstLink(fsys, name)
		if err != nil || link == "" {
			return name, info, err
		}
		target, err := fs.ReadLink(fsys, link)
		if err != nil {
			return "", nil, err
		}
		name = path.Join(path.Dir(link), target, rest)
		if path.IsAbs(target) || !fs.ValidPath(name) {
			return "", nil, errLeadsOut
		}
	}
	return "", nil, fmt.Errorf("it leads through more than %d symbolic links", maxLinks)
}

// firstLink returns the first symbolic link on a path and the rest of the path, or the file at the
// end of the path if there is none.
func firstLink(fsys fs.FS, name string) (link, rest string, info fs.FileInfo, err error) {
	segments := strings.Split(name, "/")
	for end := range segments {
		prefix := path.Join(segments[:end+1]...)
		if info, err = fs.Lstat(fsys, prefix); err != nil {
			return "", "", nil, err
		}
		if info.Mode()&fs.ModeSymlink != 0 {
			return prefix, path.Join(segments[end+1:]...), nil, nil
		}
	}
	return "", "", info, nil
}

func withoutBOM(data []byte) []byte { return bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")) }

func ignored(fsys fs.FS, root string) (*ignore.Rules, error) {
	rules := ignore.Empty()
	name := path.Join(root, ignore.HelmIgnore)
	at, info, err := follow(fsys, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("%s: %w", name, err)
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s: it is no regular file", name)
	default:
		data, err := readFile(fsys, at, info, 1<<20)
		if err != nil {
			return nil, err
		}
		if rules, err = ignore.Parse(bytes.NewReader(data)); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	rules.AddDefaults()
	return rules, nil
}

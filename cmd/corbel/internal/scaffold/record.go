// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// baseFile holds the files as they were written, so that an update knows what the author has changed.
const baseFile = ".corbel/base.tgz"

// recordOf writes the record of a project, and returns the names of its files without the source.
func recordOf(o Options, folder string) ([]string, error) {
	files, err := readProject(folder)
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range files {
		if !o.isSource(name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return append(names, recordFile), writeRecord(o, folder, files)
}

// writeRecord writes the options, and the files as the base of the next update.
func writeRecord(o Options, folder string, files map[string][]byte) error {
	archive, err := pack(files)
	if err != nil {
		return err
	}
	if err := replaceFile(filepath.Join(folder, filepath.FromSlash(baseFile)), archive); err != nil {
		return err
	}
	text, err := yaml.Marshal(o)
	if err != nil {
		return err
	}
	head := "# What this project was made of; corbel init --update reads it.\n"
	if o.Form == FormChart && o.Former == nil {
		head += "# fields: the values of the chart that are fields of the spec. A path is the keys of a value with dots between them, such as image.tag; that of an\n" +
			"# object types all values below it. spec: full types all values, and values none, unless there are fields.\n"
	}
	return replaceFile(filepath.Join(folder, recordFile), append([]byte(head), text...))
}

// readRecord reads the options of a project.
func readRecord(folder string) (Options, error) {
	var o Options
	text, err := os.ReadFile(filepath.Join(folder, recordFile))
	if err != nil {
		return o, fmt.Errorf("%s is not a project of corbel init: %w", folder, err)
	}
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		return o, fmt.Errorf("read %s: %w", recordFile, err)
	}
	return o, nil
}

// KindFolders returns the folders of the kinds of a project. That of a project with one kind is empty.
func KindFolders(project string) (folders []string) {
	o, _ := readRecord(project) // a project without a record has one kind
	for _, kind := range o.Kinds {
		folders = append(folders, kind.Package)
	}
	if folders == nil {
		return []string{""}
	}
	return folders
}

// isDerived reports whether a command writes the file, so that an update makes it anew.
func isDerived(name string) bool {
	return name == "go.sum" || strings.HasPrefix(path.Base(name), "zz_generated.") || strings.HasPrefix(name, "deploy/files/")
}

// isOwn reports whether a file is part of the record or none of the project.
func isOwn(name string) bool {
	return name == recordFile || strings.HasPrefix(name, ".corbel/") || strings.HasPrefix(name, ".git/") || strings.HasPrefix(name, "bin/")
}

// readProject reads the files of a project that an update merges.
func readProject(folder string) (map[string][]byte, error) {
	files := map[string][]byte{}
	source := os.DirFS(folder)
	err := fs.WalkDir(source, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && isOwn(name+"/"):
			return fs.SkipDir
		case !entry.Type().IsRegular() || isOwn(name) || isDerived(name):
			return nil
		}
		files[name], err = fs.ReadFile(source, name)
		return err
	})
	return files, err
}

// pack packs files, always in the same way.
func pack(files map[string][]byte) ([]byte, error) {
	var out bytes.Buffer
	zipped := gzip.NewWriter(&out)
	archive := tar.NewWriter(zipped)
	for _, name := range slices.Sorted(maps.Keys(files)) {
		header := &tar.Header{Name: name, Mode: 0o644, Size: int64(len(files[name])), Typeflag: tar.TypeReg}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(files[name]); err != nil {
			return nil, err
		}
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zipped.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// unpackFiles is the reverse of pack.
func unpackFiles(packed []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		return nil, err
	}
	files := map[string][]byte{}
	var used budget
	for archive := tar.NewReader(unzipped); ; {
		header, err := archive.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, err
		}
		if err := used.take(header.Size); err != nil {
			return nil, err
		}
		if !filepath.IsLocal(filepath.FromSlash(header.Name)) {
			return nil, fmt.Errorf("the file %q is not inside the project", header.Name)
		}
		if files[header.Name], err = io.ReadAll(archive); err != nil {
			return nil, err
		}
	}
}

// replaceFile writes a file as a whole, or not at all.
func replaceFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if info, err := os.Stat(name); err == nil {
		mode = info.Mode().Perm()
	}
	temporary, err := os.CreateTemp(filepath.Dir(name), ".corbel-")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name())
	_, err = temporary.Write(content)
	if closeErr := temporary.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Chmod(temporary.Name(), mode)
	}
	if err != nil {
		return err
	}
	return os.Rename(temporary.Name(), name)
}

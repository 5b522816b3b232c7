// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Source is what a project is made of.
type Source struct {
	Form Form
	// Path is a folder, or for a chart also a packed chart; empty for a generator in Go.
	Path string
}

// folders are where the project keeps its source, by form.
var folders = map[Form]string{FormChart: "chart", FormKustomize: "kustomization", FormYAML: "manifests"}

// A source is bounded, so that an archive cannot fill the disk.
const (
	maxSourceFiles = 20_000
	maxSourceBytes = 200 << 20
)

// copyTo copies the source into the folder of a project.
func (s Source) copyTo(stage string) error {
	form, origin := s.Form, s.Path
	if form == FormGo {
		return nil
	}
	target := filepath.Join(stage, folders[form])
	info, err := os.Stat(origin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no file or folder %s", origin)
	case err != nil:
		return err
	case info.IsDir():
		if err := copyFolder(origin, target); err != nil {
			return fmt.Errorf("copy %s: %w", origin, err)
		}
	case form == FormChart:
		if err := unpack(origin, target); err != nil {
			return fmt.Errorf("unpack %s: %w", origin, err)
		}
	default:
		return fmt.Errorf("%s is not a folder", origin)
	}
	return checkSource(form, origin, target)
}

// checkSource returns an error if a folder does not hold what it should.
func checkSource(form Form, origin, target string) error {
	need := map[Form][]string{FormChart: {"Chart.yaml"}, FormKustomize: {"kustomization.yaml", "kustomization.yml", "Kustomization"}}[form]
	for _, name := range need {
		if _, err := os.Stat(filepath.Join(target, name)); err == nil {
			return nil
		}
	}
	if len(need) > 0 {
		return fmt.Errorf("%s is not a %s: it has no file %s", origin, map[Form]string{FormChart: "Helm chart", FormKustomize: "kustomization"}[form], need[0])
	}
	return nil
}

// budget counts what is copied.
type budget struct {
	files int
	bytes int64
}

func (b *budget) take(bytes int64) error {
	b.files++
	b.bytes += bytes
	if b.files > maxSourceFiles || b.bytes > maxSourceBytes {
		return fmt.Errorf("it has more than %d files or %d MiB", maxSourceFiles, maxSourceBytes>>20)
	}
	return nil
}

// copyFolder copies the regular files of a folder, also those that links within it lead to.
func copyFolder(from, to string) error {
	root, err := os.OpenRoot(from) // no link leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	var used budget
	return fs.WalkDir(root.FS(), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if entry.Name() == ".git" {
				return fs.SkipDir
			}
			return nil
		}
		info, err := root.Stat(name)
		if err != nil {
			return err
		}
		if !info.Mode().IsRegular() {
			return fmt.Errorf("%s is neither a file nor a folder", name)
		}
		if err := used.take(info.Size()); err != nil {
			return err
		}
		content, err := root.ReadFile(name)
		if err != nil {
			return err
		}
		return writeFile(filepath.Join(to, filepath.FromSlash(name)), content)
	})
}

// unpack unpacks a packed chart, without the folder that is its first element.
func unpack(archive, to string) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("it is not a packed chart (*.tgz): %w", err)
	}
	var used budget
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		case header.Typeflag == tar.TypeDir, header.Typeflag == tar.TypeXGlobalHeader:
			continue
		case header.Typeflag != tar.TypeReg:
			return fmt.Errorf("%s is neither a file nor a folder", header.Name)
		}
		_, name, found := strings.Cut(strings.TrimPrefix(header.Name, "./"), "/")
		if !found || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the file %q is not inside the folder of the chart", header.Name)
		}
		if err := used.take(header.Size); err != nil {
			return err
		}
		content, err := io.ReadAll(io.LimitReader(reader, header.Size))
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(to, filepath.FromSlash(name)), content); err != nil {
			return err
		}
	}
}

// writeFile writes a file and the folders that it is in.
func writeFile(name string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return os.WriteFile(name, content, 0o644)
}

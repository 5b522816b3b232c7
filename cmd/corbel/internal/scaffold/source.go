// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package scaffold

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"

	"helm.sh/helm/v4/pkg/ignore"
)

// Source is what a project is made of.
type Source struct {
	Form Form
	// Path is a folder, or for a chart also a packed chart; empty for a generator in Go.
	Path string
	// Origin and Digest are recorded for a source that was fetched: its address, and what identifies its content.
	Origin, Digest string
	// Repositories has the sub-charts that a chart lacks.
	Repositories Repositories
}

// folders are where the project keeps its source, by form.
var folders = map[Form]string{FormChart: "chart", FormKustomize: "kustomization", FormYAML: "manifests"}

// A source is bounded, so that an archive cannot fill the disk.
const (
	maxSourceFiles = 20_000
	maxSourceBytes = 200 << 20
)

// copyTo copies the source into the folder of a project, and returns the sample values of a chart. It records in the options which
// folder of a kustomization is built.
func (s Source) copyTo(stage string, o *Options) ([]sample, error) {
	form, origin := s.Form, s.Path
	if form == FormGo {
		return nil, nil
	}
	target := filepath.Join(stage, folders[form])
	info, err := os.Stat(origin)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("there is no file or folder %s", origin)
	case err != nil:
		return nil, err
	case info.IsDir() && form == FormKustomize:
		o.Overlay, err = copyKustomization(origin, target)
		return nil, err
	case info.IsDir():
		if err := copyFolder(form, origin, target, &budget{}); err != nil {
			return nil, fmt.Errorf("copy %s: %w", origin, err)
		}
	case form == FormChart:
		if err := unpack(origin, target, &budget{}); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", cmp.Or(s.Origin, origin), err)
		}
		origin = target
	default:
		return nil, fmt.Errorf("%s is not a folder", origin)
	}
	if err := checkSource(form, cmp.Or(s.Origin, s.Path), target); err != nil || form != FormChart {
		return nil, err
	}
	return samplesOf(origin)
}

// sample is a file with values to try a chart with.
type sample struct {
	name string
	text []byte
}

// maxSamples limits how many files with sample values are rendered.
const maxSamples = 50

// samplesOf returns the files with values in the folder ci of a chart, also those that Helm ignores.
func samplesOf(chart string) (samples []sample, err error) {
	files := os.DirFS(chart)
	err = fs.WalkDir(files, "ci", func(name string, entry fs.DirEntry, err error) error {
		isYAML := path.Ext(name) == ".yaml" || path.Ext(name) == ".yml"
		if err != nil || !isYAML || !entry.Type().IsRegular() || len(samples) == maxSamples {
			return err
		}
		text, err := fs.ReadFile(files, name)
		samples = append(samples, sample{name, text})
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return samples, err
}

// checkSource returns an error if a folder does not hold what it should.
func checkSource(form Form, origin, target string) error {
	need := map[Form][]string{FormChart: {"Chart.yaml"}, FormKustomize: kustomizationFiles}[form]
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

// copier copies the files of a folder.
type copier struct {
	from fs.FS
	to   string
	// ignored are the rules of a chart for what Helm does not load; nil for none.
	ignored *ignore.Rules
	used    *budget
}

// maxFolders limits how deep folders are nested, which links can multiply.
const maxFolders = 40

// copyFolder copies the files of a folder, also those that links within it lead to. As helm package does, it follows all
// links of a chart, and leaves out what Helm ignores because of a .helmignore.
func copyFolder(form Form, from, to string, used *budget) error {
	root, err := os.OpenRoot(from) // no link leads out of it
	if err != nil {
		return err
	}
	defer root.Close()
	c := &copier{from: root.FS(), to: to, used: used}
	if form == FormChart {
		c.from = os.DirFS(from)
		if c.ignored, err = ignoredBy(c.from); err != nil {
			return err
		}
	}
	return c.folder(".", 0)
}

// ignoredBy returns the rules of the .helmignore of a chart, and those that Helm adds.
func ignoredBy(chart fs.FS) (*ignore.Rules, error) {
	text, err := fs.ReadFile(chart, ignore.HelmIgnore)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	rules, err := ignore.Parse(bytes.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", ignore.HelmIgnore, err)
	}
	rules.AddDefaults()
	return rules, nil
}

// folder copies what is in a folder.
func (c *copier) folder(name string, depth int) error {
	if depth > maxFolders {
		return fmt.Errorf("%s: folders are nested deeper than %d levels", name, maxFolders)
	}
	entries, err := fs.ReadDir(c.from, name)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if entry.Name() == ".git" {
			continue
		}
		if err := c.entry(path.Join(name, entry.Name()), depth); err != nil {
			return err
		}
	}
	return nil
}

// entry copies a file, or what is in a folder.
func (c *copier) entry(name string, depth int) error {
	info, err := fs.Lstat(c.from, name)
	if err != nil || c.ignores(name, info) {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		if info, err = fs.Stat(c.from, name); err != nil {
			return fmt.Errorf("%s is a link that cannot be followed: put a copy in its place: %w", name, err)
		}
		if c.ignores(name, info) { // some rules are for folders only
			return nil
		}
	}
	if !info.IsDir() && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is neither a file nor a folder", name)
	}
	if err := c.used.take(info.Size()); err != nil {
		return err
	}
	if info.IsDir() {
		return c.folder(name, depth+1)
	}
	content, err := fs.ReadFile(c.from, name)
	if err != nil {
		return err
	}
	return writeFile(filepath.Join(c.to, filepath.FromSlash(name)), content)
}

func (c *copier) ignores(name string, info fs.FileInfo) bool {
	return c.ignored != nil && c.ignored.Ignore(name, info)
}

// unpack unpacks a packed chart, without the folder that is its first element.
func unpack(archive, to string, used *budget) error {
	file, err := os.Open(archive)
	if err != nil {
		return err
	}
	defer file.Close()
	unzipped, err := gzip.NewReader(file)
	if err != nil {
		return fmt.Errorf("it is not a packed chart (*.tgz): %w", err)
	}
	for reader := tar.NewReader(unzipped); ; {
		header, err := reader.Next()
		switch {
		case err == io.EOF:
			return nil
		case err != nil:
			return err
		}
		if err := used.take(header.Size); err != nil {
			return err
		}
		switch {
		case header.Typeflag == tar.TypeDir, header.Typeflag == tar.TypeXGlobalHeader:
			continue
		case header.Typeflag != tar.TypeReg:
			return fmt.Errorf("%s is neither a file nor a folder", header.Name)
		}
		_, name, found := strings.Cut(strings.TrimPrefix(header.Name, "./"), "/")
		if !found || !filepath.IsLocal(filepath.FromSlash(name)) {
			return fmt.Errorf("the file %q is not inside the folder of the chart", header.Name)
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// module is a module that is linked, or Go's standard library.
type module struct {
	path, version string
	// licences are its licence files, by their names in the module, and ids their SPDX identifiers.
	licences []file
	ids      []string
}

// standardLibrary is the name of the standard library among the modules.
const standardLibrary = "std"

var (
	// terms are the files that say under which terms a folder may be distributed, and licence those of them with a whole licence.
	terms   = regexp.MustCompile(`(?i)^(licen[cs]e|unlicense|copying|notice|patents|copyright)([-._][^/]*)?$`)
	licence = regexp.MustCompile(`(?i)^(licen[cs]e|unlicense|copying)`)
)

// linked returns the modules that are linked into a binary, the main module first and the standard library last. The modules are those
// that the binary itself names; the go command says which of their packages are linked, and with them which licences hold.
func (b *builder) linked(ctx context.Context, built *binary) ([]module, error) {
	folders, err := b.folders(ctx, built)
	if err != nil {
		return nil, err
	}
	named := append([]*debug.Module{&built.info.Main}, built.info.Deps...)
	named = append(named, &debug.Module{Path: standardLibrary, Version: strings.TrimPrefix(built.info.GoVersion, "go")})
	var found []module
	var problems []error
	for _, m := range named {
		linked := module{path: m.Path, version: m.Version}
		if m.Version == "(devel)" {
			linked.version = b.version
		}
		in, isLinked := folders[m.Path]
		delete(folders, m.Path)
		linked.licences, err = in.terms()
		switch {
		case err != nil:
		case !isLinked:
			err = errors.New("the go command lists no package of it")
		case m.Replace != nil:
			err = errors.New("it is replaced")
		default:
			linked.ids, err = identify(linked.licences)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s for %s: module %s: %w", built.name, built.platform, m.Path, err))
		}
		found = append(found, linked)
	}
	for name := range folders {
		problems = append(problems, fmt.Errorf("%s for %s: module %s: the binary does not name it", built.name, built.platform, name))
	}
	return found, errors.Join(problems...)
}

// inModule is the folder of a module, with the folders of those packages that are linked.
type inModule struct {
	root     string
	packages []string
}

// folders returns the folders that are linked into a binary, by module.
func (b *builder) folders(ctx context.Context, built *binary) (map[string]inModule, error) {
	// The go.sum of the command lacks the line of the root module. It must not be added where the module is unpacked.
	lists := filepath.Join(b.work, "lists", built.name)
	if err := os.MkdirAll(lists, 0o755); err != nil {
		return nil, err
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(built.folder, name))
		if err == nil {
			err = os.WriteFile(filepath.Join(lists, name), content, 0o644)
		}
		if err != nil {
			return nil, err
		}
	}
	output, err := b.run(ctx, built.folder, []string{"GOOS=" + built.os, "GOARCH=" + built.arch},
		b.goCommand, "list", "-mod=mod", "-modfile="+filepath.Join(lists, "go.mod"), "-deps", "-json=Dir,Root,Standard,Module", built.pkg)
	if err != nil {
		return nil, err
	}
	found := map[string]inModule{}
	for decoder := json.NewDecoder(strings.NewReader(output)); ; {
		var p struct {
			Dir, Root string
			Standard  bool
			Module    *struct{ Path, Dir string }
		}
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return found, nil
		case err != nil:
			return nil, err
		}
		name, root := standardLibrary, p.Root
		if !p.Standard {
			name, root = p.Module.Path, p.Module.Dir
		}
		found[name] = inModule{root, append(found[name].packages, p.Dir)}
	}
}

// terms returns the licence files of the folders and of all folders above them in the module.
func (m inModule) terms() ([]file, error) {
	found := map[string]file{}
	read := map[string]bool{}
	for _, folder := range m.packages {
		for ; !read[folder] && strings.HasPrefix(folder, m.root); folder = filepath.Dir(folder) {
			read[folder] = true
			entries, err := os.ReadDir(folder)
			if err != nil {
				return nil, err
			}
			for _, entry := range entries {
				name := filepath.Join(folder, entry.Name())
				if !entry.Type().IsRegular() || !terms.MatchString(entry.Name()) || filepath.Ext(name) == ".go" {
					continue
				}
				content, err := os.ReadFile(name)
				if err != nil {
					return nil, err
				}
				relative, err := filepath.Rel(m.root, name)
				if err != nil {
					return nil, err
				}
				found[relative] = file{filepath.ToSlash(relative), 0o644, content}
			}
		}
	}
	return sorted(slices.Collect(maps.Values(found))), nil
}

// recognised is the part of a licence file, in percent, that must be text of known licences. The rest are names, dates and introductions.
const recognised = 75

// identify returns the SPDX identifiers of the licences in the root of a module, or else of those below it.
func identify(files []file) ([]string, error) {
	var atRoot, below []string
	for _, f := range files {
		if !licence.MatchString(path.Base(f.name)) {
			continue
		}
		scanned := licensecheck.Scan(f.content)
		if scanned.Percent < recognised {
			return nil, fmt.Errorf("%s has terms of no known licence: only %.0f%% of it are text of one", f.name, scanned.Percent)
		}
		for _, match := range scanned.Match {
			if match.IsURL {
				continue
			}
			if strings.Contains(f.name, "/") {
				below = append(below, match.ID)
			} else {
				atRoot = append(atRoot, match.ID)
			}
		}
	}
	ids := atRoot
	if len(ids) == 0 {
		ids = below
	}
	if len(ids) == 0 {
		return nil, errors.New("there is no licence file with a known licence")
	}
	slices.Sort(ids)
	return slices.Compact(ids), nil
}

// licenceFiles returns the licences of all modules, as files below a folder.
func licenceFiles(modules []module) []file {
	var files []file
	for _, m := range modules {
		for _, f := range m.licences {
			files = append(files, file{path.Join("licenses", m.path, f.name), f.mode, f.content})
		}
	}
	return files
}

// sorted returns files by name.
func sorted(files []file) []file {
	slices.SortFunc(files, func(a, b file) int { return cmp.Compare(a.name, b.name) })
	return files
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Tree is the repository as the checks see it.
type Tree struct {
	// Module is the path of the root module.
	Module string
	// Packages are the folders with Go files, by path.
	Packages []*Package
	// Texts are all files that hold text, the Go files included.
	Texts []*Text

	root fs.FS
}

// Package is one folder of Go files. Build constraints are not looked at:
// nothing may hide behind one.
type Package struct {
	// Path is the folder below the root, with slashes.
	Path  string
	Name  string
	Files []*File
	// Module is the folder of the module of the package.
	Module string
}

// File is one Go source.
type File struct {
	Path string
	Test bool
	// Imports are the imported paths with their local names ("" if not renamed).
	Imports []Import
	Syntax  *ast.File
}

// Import is one import of a file.
type Import struct{ Path, Name string }

// Text is the content of a file.
type Text struct{ Path, Content string }

var (
	moduleLine = regexp.MustCompile(`(?m)^module\s+(\S+)`)
	// useLine is a folder below the root in go.work.
	useLine = regexp.MustCompile(`(?m)^\t\./(\S+)$`)
)

// Load reads the tree below root. Folders that are not sources (bin, testdata,
// vendor, hidden ones except .ci and .github) are passed by.
func Load(root fs.FS) (*Tree, error) {
	module, err := fs.ReadFile(root, "go.mod")
	if err != nil {
		return nil, fmt.Errorf("read the module's go.mod: %w", err)
	}
	match := moduleLine.FindSubmatch(module)
	if match == nil {
		return nil, errors.New("go.mod has no module line")
	}
	t := &Tree{Module: string(match[1]), root: root}
	if err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && skipped(entry.Name()):
			return fs.SkipDir
		case name == ".git": // a file in a linked work tree
			return nil
		case entry.Type().IsRegular():
			return t.add(root, name)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	t.findModules()
	return t, nil
}

func skipped(folder string) bool {
	hidden := strings.HasPrefix(folder, ".") && folder != ".ci" && folder != ".github"
	return hidden || slices.Contains([]string{"bin", "testdata", "vendor"}, folder)
}

func (t *Tree) add(root fs.FS, name string) error {
	content, err := fs.ReadFile(root, name)
	if err != nil {
		return err
	}
	if slices.Contains(content, 0) {
		return nil // not text
	}
	t.Texts = append(t.Texts, &Text{Path: name, Content: string(content)})
	if path.Ext(name) != ".go" {
		return nil
	}
	file, err := parseFile(name, content)
	if err != nil {
		return err
	}
	p := t.packageAt(path.Dir(name))
	p.Files = append(p.Files, file)
	if !file.Test || p.Name == "" {
		p.Name = strings.TrimSuffix(file.Syntax.Name.Name, "_test")
	}
	return nil
}

func (t *Tree) packageAt(folder string) *Package {
	index, found := slices.BinarySearchFunc(t.Packages, folder, func(p *Package, folder string) int {
		return cmp.Compare(p.Path, folder)
	})
	if !found {
		t.Packages = slices.Insert(t.Packages, index, &Package{Path: folder})
	}
	return t.Packages[index]
}

// findModules finds the modules of the packages.
func (t *Tree) findModules() {
	for _, p := range t.Packages {
		p.Module = "."
	}
	for _, text := range t.Texts {
		folder, base := path.Split(text.Path)
		if base != "go.mod" || folder == "" {
			continue
		}
		for _, p := range t.Packages {
			if strings.HasPrefix(p.Path+"/", folder) {
				p.Module = path.Clean(folder)
			}
		}
	}
}

// ours returns the packages of the modules in go.work.
func (t *Tree) ours() []*Package {
	modules := []string{"."}
	if work, ok := t.text("go.work"); ok {
		for _, match := range useLine.FindAllStringSubmatch(work.Content, -1) {
			modules = append(modules, match[1])
		}
	}
	return slices.DeleteFunc(slices.Clone(t.Packages), func(p *Package) bool { return !slices.Contains(modules, p.Module) })
}

// positions has the positions in all files.
var positions = token.NewFileSet()

func parseFile(name string, content []byte) (*File, error) {
	syntax, err := parser.ParseFile(positions, name, content, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	file := &File{
		Path:   name,
		Test:   strings.HasSuffix(name, "_test.go"),
		Syntax: syntax,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, fmt.Errorf("%s: import %s: %w", name, spec.Path.Value, err)
		}
		i := Import{Path: imported}
		if spec.Name != nil {
			i.Name = spec.Name.Name
		}
		file.Imports = append(file.Imports, i)
	}
	return file, nil
}

// line is the line of a position.
func (f *File) line(at token.Pos) int { return positions.Position(at).Line }

// Violation is one rule broken in one place.
type Violation struct {
	// Where is a package or a file, with a line if there is one.
	Where string
	// What is broken and what to do about it.
	What string
}

// String is the line that the test prints.
func (v Violation) String() string { return v.Where + ": " + v.What }

func violation(where, format string, args ...any) Violation {
	return Violation{Where: where, What: fmt.Sprintf(format, args...)}
}

func at(f *File, line int) string { return fmt.Sprintf("%s:%d", f.Path, line) }

func lineOf(text *Text, line int) string { return fmt.Sprintf("%s:%d", text.Path, line) }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"go/ast"
	"go/doc"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const mapFile = "docs/README.md"

var (
	// pathInText is a path of the repository that a document names as code.
	pathInText = regexp.MustCompile("`((?:api|pkg|internal|cmd|test|hack|examples|docs|\\.ci|\\.github)/[A-Za-z0-9_./-]*)`")
	// nameInText is a function or a type that a document names as code, with the file or folder that
	// it is in.
	nameInText = regexp.MustCompile("`(?:[A-Za-z]+\\.)?([A-Za-z]+)` in `((?:pkg|internal|cmd)/[A-Za-z0-9_./-]*)`")
	// codeOf labels a block of code that must also be in a file, where it is compiled.
	codeOf = regexp.MustCompile("(?s)<!-- code of (\\S+) -->\n```go\n(.*?)\n```")
	// goBlock is a block of Go, with the line above it.
	goBlock = regexp.MustCompile("(?m)^(.*)\n *```go$")
	// relativeLink is the target of a link that stays in the repository.
	relativeLink = regexp.MustCompile(`\]\(([A-Za-z0-9_.][A-Za-z0-9_./-]*)(?:#[^)]*)?\)`)
)

// Documents checks that the documents at the root and in docs agree with the
// tree: the picture of the floors, the package map, every path and every link.
func Documents(t *Tree, rooms []Room) []Violation {
	var found []Violation
	for _, text := range t.Texts {
		if path.Ext(text.Path) == ".md" {
			found = append(found, deadPaths(t, rooms, text)...)
			found = append(found, deadNames(t, text)...)
			found = append(found, staleCode(t, rooms, text)...)
			found = append(found, unlabelledCode(text)...)
		}
	}
	if picture, err := fs.ReadFile(t.root, pictureFile); err == nil && string(picture) != renderPicture(rooms) {
		found = append(found, violation(pictureFile, "it does not show the rooms of test/architecture/rooms.go: run go test ./test/architecture -rewrite"))
	}
	if readme, ok := t.text(mapFile); ok {
		for _, p := range t.ours() {
			if room, known := roomOf(rooms, p.Path); known && isPublic(room) && !strings.Contains(readme.Content, "`"+p.Path+"`") {
				found = append(found, violation(mapFile, "its package map lacks `%s`", p.Path))
			}
		}
	}
	return found
}

func (t *Tree) text(name string) (*Text, bool) {
	index := slices.IndexFunc(t.Texts, func(text *Text) bool { return text.Path == name })
	if index < 0 {
		return nil, false
	}
	return t.Texts[index], true
}

// deadPaths finds paths and links of a document with a target that does not exist.
func deadPaths(t *Tree, rooms []Room, text *Text) []Violation {
	var found []Violation
	for number, line := range strings.Split(text.Content, "\n") {
		for _, match := range pathInText.FindAllStringSubmatch(line, -1) {
			if name := path.Clean(strings.TrimSuffix(match[1], "...")); !t.exists(name) && !awaited(t, rooms, name) {
				found = append(found, violation(lineOf(text, number+1), "names `%s`, which does not exist", match[1]))
			}
		}
		for _, match := range relativeLink.FindAllStringSubmatch(line, -1) {
			if name := path.Join(path.Dir(text.Path), match[1]); !t.exists(name) {
				found = append(found, violation(lineOf(text, number+1), "links to %s, which does not exist", match[1]))
			}
		}
	}
	return found
}

// deadNames finds functions and types that a document names and that are not where it says.
func deadNames(t *Tree, text *Text) []Violation {
	var found []Violation
	for number, line := range strings.Split(text.Content, "\n") {
		for _, match := range nameInText.FindAllStringSubmatch(line, -1) {
			declaration := regexp.MustCompile(`(?m)^(?:type |func (?:\([^)]*\) )?)` + match[1] + `[ \[(]`)
			if match[1] != "go" && !slices.ContainsFunc(t.Texts, func(file *Text) bool {
				isInside := file.Path == match[2] || strings.HasPrefix(file.Path, match[2]+"/")
				return isInside && path.Ext(file.Path) == ".go" && declaration.MatchString(file.Content)
			}) {
				found = append(found, violation(lineOf(text, number+1), "names %s in %s, which does not exist", match[1], match[2]))
			}
		}
	}
	return found
}

// staleCode finds lines of labelled blocks that are not, in this order, in the file
// that the label names. In a file of tests, the main function of a document is an Example.
func staleCode(t *Tree, rooms []Room, text *Text) []Violation {
	var found []Violation
	for _, block := range codeOf.FindAllStringSubmatch(text.Content, -1) {
		source, ok := t.text(block[1])
		if !ok {
			if !awaited(t, rooms, block[1]) {
				found = append(found, violation(text.Path, "shows code of %s, which does not exist", block[1]))
			}
			continue
		}
		rest := strings.Split(squeeze(source.Content), "\n")
		for line := range strings.SplitSeq(squeeze(block[2]), "\n") {
			if strings.HasSuffix(block[1], "_test.go") {
				line = strings.Replace(line, "func main()", "func Example()", 1)
			}
			index := slices.Index(rest, line)
			if index < 0 {
				found = append(found, violation(text.Path, "shows code of %s that is not there, or not in this order: %s", block[1], line))
				break
			}
			rest = rest[index+1:]
		}
	}
	return found
}

// unlabelledCode finds blocks of Go that nothing compiles.
func unlabelledCode(text *Text) []Violation {
	if folder := path.Dir(text.Path); text.Path != "README.md" && folder != "docs" && folder != "docs/reconcilers" {
		return nil
	}
	var found []Violation
	for _, block := range goBlock.FindAllStringSubmatchIndex(text.Content, -1) {
		above := strings.TrimSpace(text.Content[block[2]:block[3]])
		if !strings.HasPrefix(above, "<!-- code of ") && above != "<!-- output -->" {
			line := strings.Count(text.Content[:block[1]], "\n") + 1
			found = append(found, violation(lineOf(text, line), "shows Go that nothing compiles: put it into a file of the repository, and label the block with <!-- code of its path -->"))
		}
	}
	return found
}

// squeeze makes lines comparable that are indented or aligned differently.
func squeeze(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		lines[i] = strings.Join(strings.Fields(line), " ")
	}
	return strings.Join(lines, "\n")
}

// exists reports whether a file or folder is in the tree.
func (t *Tree) exists(name string) bool {
	_, err := fs.Stat(t.root, name)
	return err == nil
}

// awaited reports whether a path is in a room that is planned and not built yet.
func awaited(t *Tree, rooms []Room, name string) bool {
	return slices.ContainsFunc(rooms, func(room Room) bool {
		folder := strings.TrimSuffix(room.Path, "/...")
		return covers(folder+"/...", name) && !t.exists(folder)
	})
}

// PackageDocs checks that a comment above a package clause describes every package.
func PackageDocs(t *Tree) []Violation {
	var found []Violation
	for _, p := range t.Packages {
		start := "Package " + p.Name + " "
		if p.Name == "main" {
			start = ""
		}
		if !slices.ContainsFunc(p.Files, func(f *File) bool { return f.Syntax.Doc.Text() != "" && strings.HasPrefix(f.Syntax.Doc.Text(), start) }) {
			found = append(found, violation(p.Path, "no comment above a package clause describes the package; it starts with %q", start))
		}
	}
	return found
}

// Examples checks that every public package has an Example that go test runs,
// which it does if the Example states its output.
func Examples(t *Tree, rooms []Room) []Violation {
	var found []Violation
	for _, p := range t.ours() {
		room, ok := roomOf(rooms, p.Path)
		if !ok || !isPublic(room) {
			continue
		}
		var tests []*ast.File
		for _, file := range p.Files {
			if file.Test {
				tests = append(tests, file.Syntax)
			}
		}
		runs := func(e *doc.Example) bool { return e.Output != "" || e.EmptyOutput }
		if !slices.ContainsFunc(doc.Examples(tests...), runs) {
			found = append(found, violation(p.Path, "the public package has no Example with an output comment that shows its use"))
		}
	}
	return found
}

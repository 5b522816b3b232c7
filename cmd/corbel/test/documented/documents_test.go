// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/corbel-run/corbel/test/check"
)

// root is the repository.
const root = "../../../.."

// languages are those of blocks. docs/contributing/documents.md says how each is proven.
var languages = []string{"go", "yaml", "gotemplate", "sh", "lua", "console", "text"}

// page is a document in Markdown.
type page struct {
	name  string // its path in the repository
	lines []string
}

// pages returns all documents of the repository.
func pages(t *testing.T) []page {
	t.Helper()
	var found []page
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
		switch base := path.Base(name); {
		case err != nil:
			return err
		case entry.IsDir() && (base == "bin" || base == "testdata" || len(base) > 1 && base[0] == '.'):
			return fs.SkipDir
		case entry.IsDir() || path.Ext(name) != ".md":
			return nil
		}
		content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
		p := page{name: name, lines: strings.Split(string(content), "\n")}
		found = append(found, p)
		blocks, _ := p.split()
		for _, b := range blocks {
			if !slices.Contains(languages, b.language) {
				t.Errorf("%s:%d: docs/contributing/documents.md does not list the language %q", name, b.line, b.language)
			}
		}
		return err
	})
	check.NoError(t, err)
	if len(found) < 20 {
		t.Fatalf("there are %d documents only: something is not seen", len(found))
	}
	return found
}

// block is a block of code between two fences.
type block struct {
	language string // empty: none is given
	line     int    // of the fence above it, counted from 1
	text     string
}

// fence begins and ends a block. It may be indented, inside of a list.
var fence = regexp.MustCompile("^( *)```([^`]*)$")

// split returns the blocks of a document, and its lines with those of blocks empty.
func (p page) split() (blocks []block, prose []string) {
	var current *block
	indent := ""
	for i, line := range p.lines {
		match := fence.FindStringSubmatch(line)
		switch {
		case current == nil && match == nil:
			prose = append(prose, line)
			continue
		case current == nil:
			indent, current = match[1], &block{language: match[2], line: i + 1}
		case match != nil && match[2] == "":
			blocks, current = append(blocks, *current), nil
		default:
			current.text += strings.TrimPrefix(line, indent) + "\n"
		}
		prose = append(prose, "")
	}
	return blocks, prose
}

var (
	// link is a link in the form [text](target), or an image.
	link = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	// inlineCode is no place for links.
	inlineCode = regexp.MustCompile("`[^`]*`")
	heading    = regexp.MustCompile(`^#{1,6} +(.*?) *$`)
	// linkText is the text of a link in a heading.
	linkText = regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`)
)

// TestEveryLinkHasATarget finds links to files that do not exist, and to headings that their
// document does not have.
func TestEveryLinkHasATarget(t *testing.T) {
	all := pages(t)
	anchors := map[string]map[string]bool{}
	for _, p := range all {
		anchors[p.name] = p.anchors()
	}
	total := 0
	for _, p := range all {
		for number, targets := range p.links() {
			for _, target := range targets {
				total++
				if problem := deadLink(p.name, target, anchors); problem != "" {
					t.Errorf("%s:%d: the link to %s: %s", p.name, number, target, problem)
				}
			}
		}
	}
	if total < 50 {
		t.Errorf("there are %d links only: something is not seen", total)
	}
}

// links returns the targets of relative links, by the number of their line.
func (p page) links() map[int][]string {
	found := map[int][]string{}
	_, prose := p.split()
	for i, line := range prose {
		for _, match := range link.FindAllStringSubmatch(inlineCode.ReplaceAllString(line, ""), -1) {
			if !strings.Contains(match[1], ":") {
				found[i+1] = append(found[i+1], match[1])
			}
		}
	}
	return found
}

// anchors returns the names by which the headings of a document can be linked to.
func (p page) anchors() map[string]bool {
	found := map[string]bool{}
	_, prose := p.split()
	for _, line := range prose {
		match := heading.FindStringSubmatch(line)
		if match == nil {
			continue
		}
		name := anchorOf(match[1])
		for n, unique := 1, name; ; n++ {
			if !found[unique] {
				found[unique] = true
				break
			}
			unique = fmt.Sprintf("%s-%d", name, n)
		}
	}
	return found
}

// anchorOf returns the anchor of a heading, as GitHub makes it: in lower case, with hyphens in
// place of spaces, and without punctuation.
func anchorOf(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, linkText.ReplaceAllString(heading, "$1"))
}

// deadLink says what is wrong with a link in a document; it is empty if nothing is.
func deadLink(document, target string, anchors map[string]map[string]bool) string {
	name, anchor, anchored := strings.Cut(target, "#")
	file := document
	if name != "" {
		file = path.Join(path.Dir(document), name)
	}
	if known, isPage := anchors[file]; isPage {
		if anchored && !known[anchor] {
			return "the document has no such heading"
		}
		return ""
	}
	if _, err := os.Stat(filepath.Join(root, filepath.FromSlash(file))); err != nil || strings.HasPrefix(file, "..") {
		return "the file does not exist"
	}
	return ""
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package documented

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"unicode"
)

// messages are the texts that the sources can print.
type messages struct {
	constant map[string]bool // texts without a part that varies
	patterns []pattern
}

// pattern is a format, or a text with parts that vary.
type pattern struct {
	longest    string // of the pieces that do not vary
	expression *regexp.Regexp
}

// sources are the folders with the code that prints.
var sources = []string{"api", "pkg", "internal", "cmd", "examples"}

// ofOthers are messages that a document shows and that Kubernetes prints, or a program that an author writes.
var ofOthers = []string{
	"DeadlineExceeded", "Job was active longer than specified deadline", // Jobs
	`Service "bad-name_x" is invalid`, "metadata.name", "Invalid value", // the validation of the API server
	"a.yaml:1", "unclosed action", // package text/template
	"incident 7",           // a reason that a user gives
	"pre-reconcile hook 1", // a format with hardly a letter
}

const (
	// minLetters is how many letters of a format do not vary, at least. A format of fewer would match anything.
	minLetters = 5
	// minPiece is how long the piece of a format is, at least, that says that a message with an ellipsis is of that format.
	minPiece = 15
)

// verb is a verb of a format.
var verb = regexp.MustCompile(`%[-+# 0]*(\[\d+\])?[0-9*]*(\.[0-9*]+)?[a-zA-Z]`)

// readMessages returns the texts in all sources.
func readMessages(t *testing.T) messages {
	t.Helper()
	m := messages{constant: map[string]bool{}}
	for _, text := range ofOthers {
		m.constant[text] = true
	}
	for _, folder := range sources {
		err := fs.WalkDir(os.DirFS(root), folder, func(name string, entry fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case entry.IsDir() && entry.Name() == "testdata":
				return fs.SkipDir
			case entry.IsDir() || path.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go") || strings.HasPrefix(entry.Name(), "zz_generated"):
				return nil
			}
			content, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return err
			}
			return m.add(content)
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if len(m.patterns) < 500 {
		t.Fatalf("there are %d formats only: something is not seen", len(m.patterns))
	}
	return m
}

// varies stands for an operand that is no literal.
const varies = "\x00"

// add adds the texts of a file.
func (m *messages) add(content []byte) error {
	file, err := parser.ParseFile(token.NewFileSet(), "", content, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.ImportSpec:
			return false
		case *ast.BinaryExpr:
			if n.Op == token.ADD {
				if text := sum(n); strings.Trim(text, varies) != "" {
					m.addText(text)
				}
			}
		case *ast.BasicLit:
			m.addText(sum(n))
		}
		return true
	})
	return nil
}

// sum returns the text of a literal or of a sum of literals and other operands.
func sum(expression ast.Expr) string {
	switch e := expression.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			return sum(e.X) + sum(e.Y)
		}
	}
	return varies
}

// addText adds a text with verbs.
func (m *messages) addText(text string) {
	text = verb.ReplaceAllString(strings.ReplaceAll(text, "%%", "%"), varies)
	text = strings.TrimPrefix(strings.TrimPrefix(text, "; "), ": ")
	parts := strings.Split(text, varies)
	if len(parts) == 1 {
		m.constant[text] = true
		return
	}
	letters, longest := 0, ""
	for i, part := range parts {
		for _, r := range part {
			if unicode.IsLetter(r) {
				letters++
			}
		}
		if len(part) > len(longest) {
			longest = part
		}
		parts[i] = regexp.QuoteMeta(part)
	}
	if letters >= minLetters {
		m.patterns = append(m.patterns, pattern{longest, regexp.MustCompile(`(?s)^` + strings.Join(parts, `.*`) + `$`)})
	}
}

var (
	// object is the name of an object, or of a kind, as messages have it.
	object = regexp.MustCompile(`^(?:(?:[a-z]+ )?[A-Z][A-Za-z]+|pod) [a-z0-9._-]+(?:/[a-z0-9._-]+)?(?: |$)`)
	// separator is between the parts that a message is composed of.
	separator = regexp.MustCompile(`: |; | \(`)
)

// knows reports whether the sources print a part of a message. Before it, there may be the object that it is about.
func (m messages) knows(part string) bool {
	if part == "..." || m.prints(part) || m.prints(part+")") {
		return true
	}
	short := strings.TrimSuffix(strings.TrimPrefix(part, "... "), " ...")
	if short != part {
		for _, p := range m.patterns {
			if len(p.longest) >= minPiece && strings.Contains(part, p.longest) {
				return true
			}
		}
	}
	if match := object.FindString(short); match != "" {
		return match == short || m.knows(short[len(match):])
	}
	return short != part && m.knows(short)
}

func (m messages) prints(text string) bool {
	if m.constant[text] {
		return true
	}
	for _, p := range m.patterns {
		if strings.Contains(text, p.longest) && p.expression.MatchString(text) {
			return true
		}
	}
	return false
}

// compose reports whether a message is composed of parts that the sources print.
func (m messages) compose(text string) bool {
	if text == "" {
		return true
	}
	ends := separator.FindAllStringIndex(text, -1)
	for i := len(ends) - 1; i >= 0; i-- { // the longest part first
		if m.knows(text[:ends[i][0]]) && m.compose(text[ends[i][1]:]) {
			return true
		}
	}
	return m.knows(text)
}

var (
	// messageTable is the head of a table with messages in its first column.
	messageTable = regexp.MustCompile(`^\| *(symptom|message) *\|`)
	// span is inline code.
	span = regexp.MustCompile("`([^`]+)`")
)

// shown returns the messages that a document shows, by their lines: those of blocks, and those of tables.
func (p page) shown() map[int][]string {
	found := map[int][]string{}
	blocks, prose := p.split()
	for _, b := range blocks {
		if b.language == "text" && b.label == "" {
			for i, line := range strings.Split(strings.TrimSpace(b.text), "\n") {
				found[b.line+1+i] = append(found[b.line+1+i], line)
			}
		}
	}
	inTable := false
	for i, line := range prose {
		inTable = strings.HasPrefix(line, "|") && (inTable || messageTable.MatchString(line))
		if !inTable {
			continue
		}
		cell, _, _ := strings.Cut(strings.ReplaceAll(line[1:], `\|`, "\x01"), "|")
		for _, match := range span.FindAllStringSubmatch(cell, -1) {
			if text := strings.ReplaceAll(match[1], "\x01", "|"); strings.Count(text, " ") > 1 {
				found[i+1] = append(found[i+1], text)
			}
		}
	}
	return found
}

// TestEveryMessageIsInTheSources finds messages that no code prints any more. A message is composed of parts, such as
// the name of an object and what is wrong with it; each part is a text or a format of the sources.
func TestEveryMessageIsInTheSources(t *testing.T) {
	known, total := readMessages(t), 0
	for _, p := range pages(t) {
		for line, texts := range p.shown() {
			for _, text := range texts {
				if total++; !known.compose(text) {
					t.Errorf("%s:%d: no code prints %q: correct the document, or add what is not of Corbel to ofOthers", p.name, line, text)
				}
			}
		}
	}
	if total < 60 {
		t.Errorf("there are %d messages only: something is not seen", total)
	}
}

func TestAMessageThatNoCodePrintsIsFound(t *testing.T) {
	m := messages{constant: map[string]bool{}}
	if err := m.add([]byte("package p\nimport \"fmt\"\nvar _ = fmt.Sprintf(\"%d of %d replicas ready\", 1, 2)\nvar _ = \"waits for \" + x + \" (apply-order \" + y + \")\"\nvar _ = \"is missing\"\nvar _ = \"%s: %v\"\n")); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{
		"Deployment shop/db: 0 of 1 replicas ready":                                            true,
		"ConfigMap a: waits for Deployment db (apply-order -1); Secret b: is missing; ...":     true,
		"Deployment shop/db: 0 of 1 replicas available":                                        false,
		"Deployment shop/db: 0 of 1 replicas ready; ConfigMap a: waited for b (apply-order 1)": false,
		"anything: at all": false,
		"fmt":              false,
	} {
		if got := m.compose(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	}
}

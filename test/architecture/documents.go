// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	floorsFile  = "ARCHITECTURE.md"
	floorsBegin = "<!-- floors: written by `go test ./test/architecture -rewrite` -->\n"
	floorsEnd   = "<!-- end of floors -->"
)

var (
	// pathInText is a path of the repository that a document names as code.
	pathInText = regexp.MustCompile("`((?:api|pkg|internal|cmd|test|hack|examples|docs|\\.ci)/[A-Za-z0-9_./-]*)`")
	// codeOf marks a block of code that must also stand in a file, where it is compiled.
	codeOf = regexp.MustCompile("(?s)<!-- code of (\\S+) -->\n```go\n(.*?)\n```")
	// relativeLink is the target of a link that stays in the repository.
	relativeLink = regexp.MustCompile(`\]\(([A-Za-z0-9_.][A-Za-z0-9_./-]*)(?:#[^)]*)?\)`)
)

// Documents checks that the documents at the root and in docs tell the truth
// about the tree: the floors, the package map, every path and every link.
func Documents(t *Tree, house []Room) []Violation {
	var found []Violation
	for _, text := range t.Texts {
		if path.Ext(text.Path) == ".md" {
			found = append(found, deadPaths(t, house, text)...)
			found = append(found, staleCode(t, text)...)
		}
	}
	if architecture, ok := t.text(floorsFile); ok {
		if rewritten, err := withFloors(architecture.Content, house); err != nil {
			found = append(found, violation(floorsFile, "%v", err))
		} else if rewritten != architecture.Content {
			found = append(found, violation(floorsFile, "its floors are not those of test/architecture/rooms.go: run go test ./test/architecture -rewrite"))
		}
	}
	if readme, ok := t.text("README.md"); ok {
		for _, p := range t.ours() {
			if room, known := roomOf(house, p.Path); known && isPublic(room) && !strings.Contains(readme.Content, "`"+p.Path+"`") {
				found = append(found, violation("README.md", "its package map lacks `%s`", p.Path))
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

// deadPaths finds paths and links of a document that lead nowhere.
func deadPaths(t *Tree, house []Room, text *Text) []Violation {
	var found []Violation
	for number, line := range strings.Split(text.Content, "\n") {
		for _, match := range pathInText.FindAllStringSubmatch(line, -1) {
			if name := path.Clean(strings.TrimSuffix(match[1], "...")); !t.exists(name) && !awaited(t, house, name) {
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

// staleCode finds lines of marked blocks that are not, in this order, in the file
// that the mark names. The main function of a document is an Example there.
func staleCode(t *Tree, text *Text) []Violation {
	var found []Violation
	for _, block := range codeOf.FindAllStringSubmatch(text.Content, -1) {
		source, ok := t.text(block[1])
		if !ok {
			continue // not built yet
		}
		rest := strings.Split(squeeze(source.Content), "\n")
		for wanted := range strings.SplitSeq(squeeze(block[2]), "\n") {
			wanted = strings.Replace(wanted, "func main()", "func Example()", 1)
			index := slices.Index(rest, wanted)
			if index < 0 {
				found = append(found, violation(text.Path, "shows code of %s that is not there, or not in this order: %s", block[1], wanted))
				break
			}
			rest = rest[index+1:]
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

// exists tells whether a file or folder is in the tree.
func (t *Tree) exists(name string) bool {
	_, err := fs.Stat(t.root, name)
	return err == nil
}

// awaited tells whether a path lies in a room that is planned and not built yet.
func awaited(t *Tree, house []Room, name string) bool {
	return slices.ContainsFunc(house, func(room Room) bool {
		folder := strings.TrimSuffix(room.Path, "/...")
		return covers(folder+"/...", name) && !t.exists(folder)
	})
}

// withFloors returns the document with the floors of the house between its marks.
func withFloors(document string, house []Room) (string, error) {
	before, rest, begins := strings.Cut(document, floorsBegin)
	_, after, ends := strings.Cut(rest, floorsEnd)
	if !begins || !ends {
		return "", fmt.Errorf("lacks the lines %q and %q", strings.TrimSpace(floorsBegin), floorsEnd)
	}
	return before + floorsBegin + renderFloors(house) + floorsEnd + after, nil
}

// renderFloors writes the house as a table, the highest floor first, and the
// exceptions below it.
func renderFloors(house []Room) string {
	floors := map[int][]string{}
	kinds := map[Kind][]string{}
	var edges []string
	for _, room := range house {
		name := "`" + room.Path + "`"
		floors[room.Floor] = append(floors[room.Floor], name)
		kinds[room.Kind] = append(kinds[room.Kind], name)
		if len(room.Beside) > 0 {
			edges = append(edges, name+" → `"+strings.Join(room.Beside, "`, `")+"`")
		}
	}
	var b strings.Builder
	b.WriteString("| floor | packages |\n|---|---|\n")
	for floor := supportFloor; floor >= 0; floor-- {
		if len(floors[floor]) > 0 {
			label := fmt.Sprint(floor)
			if floor == supportFloor {
				label = "tests"
			}
			fmt.Fprintf(&b, "| %s | %s |\n", label, strings.Join(floors[floor], ", "))
		}
	}
	fmt.Fprintf(&b, "\n- Sideways: %s.\n", strings.Join(edges, "; "))
	fmt.Fprintf(&b, "- Closed: %s.\n", strings.Join(kinds[Closed], ", "))
	fmt.Fprintf(&b, "- Data: %s.\n", strings.Join(kinds[Data], ", "))
	return b.String()
}

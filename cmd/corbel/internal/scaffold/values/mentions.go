// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package values

import (
	"regexp"
	"slices"
	"strings"

	sigsyaml "sigs.k8s.io/yaml"
)

// maxRows is how many rows of tables in a README are written by hand. A longer table lists all values of the chart.
const maxRows = 25

var (
	heading = regexp.MustCompile(`^(#+)\s+(.*)$`)
	// history is a section that says what earlier versions of the chart had.
	history = regexp.MustCompile(`(?i)upgrad|migrat|breaking|change ?log|release notes|uninstall|deprecat|development|contribut`)
	// first is a section that users read first.
	first   = regexp.MustCompile(`(?i)install|quick|getting started|tl;? ?dr|prerequisit|usage|minim|require|must|before|basic`)
	setFlag = regexp.MustCompile(`--set(?:-string|-file|-json|-literal)?[ =]+["']?([^\s"']+)`)
	code    = regexp.MustCompile("`([^`]+)`")
	link    = regexp.MustCompile(`\]\([^)]*\)|https?://\S+`)
	tag     = regexp.MustCompile(`<[^>]*>`)
	action  = regexp.MustCompile(`(?s)\{\{.*?\}\}`)
)

// mention records that a document mentions a value.
func (n *needs) mention(path string, rank int) {
	n.raise(path, rank)
	n.mentions[path]++
}

// readme ranks the values that a README in Markdown mentions: in its commands, its examples and its prose, and
// after these in tables. Sections about earlier versions do not count.
func (n *needs) readme(text string) {
	var rows, block []string
	fence, skipped, bonus := "", 0, 0
	for line := range strings.Lines(text) {
		trimmed := strings.TrimSpace(line)
		mark := strings.HasPrefix(trimmed, "```") || strings.HasPrefix(trimmed, "~~~")
		switch {
		case fence != "" && mark && strings.HasPrefix(trimmed, fence):
			if fence = ""; skipped == 0 {
				n.block(strings.Join(block, ""), bonus)
			}
			block = nil
		case fence != "":
			block = append(block, line)
		case mark:
			fence = trimmed[:3]
		case heading.MatchString(trimmed):
			match := heading.FindStringSubmatch(trimmed)
			if level := len(match[1]); skipped == 0 || level <= skipped {
				if skipped, bonus = 0, 0; history.MatchString(match[2]) {
					skipped = level
				} else if first.MatchString(match[2]) {
					bonus = 5
				}
			}
		case skipped > 0:
		case strings.HasPrefix(trimmed, "|"), strings.HasPrefix(trimmed, "<t"), strings.HasPrefix(trimmed, "</t"):
			rows = append(rows, trimmed)
		default:
			n.prose(trimmed, rankDocumented+inProse+bonus)
		}
	}
	n.rows(rows)
}

// rows ranks the values that are in the first cells of tables.
func (n *needs) rows(rows []string) {
	type entry struct{ path, row string }
	var entries []entry
	for _, row := range rows {
		cell, _, _ := strings.Cut(strings.TrimLeft(tag.ReplaceAllString(link.ReplaceAllString(row, "]"), ""), "| "), "|")
		if path := n.leaf(strings.Trim(cell, "[]`*_ \\"), false); path != "" {
			entries = append(entries, entry{path, row})
		}
	}
	for _, e := range entries {
		switch {
		case isDemand(e.row):
			n.mention(e.path, rankDocumented+inDemand)
		case len(entries) <= maxRows:
			n.mention(e.path, rankDocumented)
		case n.isUnusual(e.path):
			n.mention(e.path, rankRow)
		default:
			n.mentions[e.path]++
		}
	}
}

// isUnusual reports whether a value is one of the application, and no setting of pods.
func (n *needs) isUnusual(path string) bool {
	field := n.leaves[path]
	plain := strings.ToLower(strings.Join(wordsOf(field.Key), ""))
	return field.Origin != FromName && !isAside(path) && !general.MatchString(plain) && !slices.Contains(usualScalars, plain) && !strings.HasSuffix(plain, "override") &&
		!strings.Contains(strings.ToLower(field.Doc), "deprecated")
}

// block ranks the values in a block of code: those of commands, and those of a document with values.
func (n *needs) block(text string, bonus int) {
	if n.commands(text, bonus) {
		return
	}
	var document map[string]any
	if sigsyaml.Unmarshal([]byte(text), &document) != nil || document["apiVersion"] != nil && document["kind"] != nil {
		return
	}
	for _, path := range n.in(document) {
		n.mention(path, rankDocumented+inBlock+bonus)
	}
}

// commands ranks the values that commands in a text set, and reports whether there are any.
func (n *needs) commands(text string, bonus int) bool {
	matches := setFlag.FindAllStringSubmatch(text, -1)
	for _, match := range matches {
		for _, assignment := range splitOutside(match[1], ',') {
			name, _, _ := strings.Cut(assignment, "=")
			if path := n.leaf(name, false); path != "" {
				n.mention(path, rankDocumented+inCommand+bonus)
			}
		}
	}
	return len(matches) > 0
}

// prose ranks the values that a line of prose names. A name without a dot counts if it is marked as code, or if it is
// no plain word.
func (n *needs) prose(line string, rank int) {
	if n.commands(line, max(0, rank-rankDocumented-inProse)) {
		return
	}
	line = link.ReplaceAllString(line, "]")
	named := func(word string) {
		if path := n.leaf(word, true); path != "" {
			n.mention(path, rank)
		}
	}
	for _, span := range code.FindAllStringSubmatch(line, -1) {
		for _, word := range pathWord.FindAllString(span[1], -1) {
			named(word)
			n.section(word, rank-10)
		}
	}
	for _, word := range pathWord.FindAllString(code.ReplaceAllString(line, ""), -1) {
		if strings.Contains(word, ".") || n.isTopScalar(word) {
			named(word)
		}
	}
}

// section ranks the values without a default in an object that prose names, unless the object is a usual one.
func (n *needs) section(path string, rank int) {
	_, key := cutLast(path)
	if n.objects[path] == nil || isAside(path) || slices.ContainsFunc(wishes, func(w wish) bool { return slices.Contains(w.parents, key) }) {
		return
	}
	named := section{path, rank}
	if n.sections[named]++; n.sections[named] > maxMentions {
		return // without this, a long text with thousands of values takes minutes
	}
	below := path + "."
	for _, leaf := range n.order {
		if strings.HasPrefix(leaf, below) && isEmpty(n.leaves[leaf].Default) && n.leaves[leaf].Origin != FromName {
			n.mention(leaf, rank)
		}
	}
}

// notes ranks the values that the notes after an installation mention.
func (n *needs) notes(text string) {
	for line := range strings.Lines(action.ReplaceAllString(text, "")) {
		n.prose(line, rankDocumented+inProse)
	}
}

// question is a question that Rancher asks a user.
type question struct {
	Variable     string     `json:"variable"`
	Required     bool       `json:"required"`
	Subquestions []question `json:"subquestions"`
}

// questions ranks the values that Rancher asks users for. A file that cannot be read asks for none.
func (n *needs) questions(text []byte) {
	var form struct {
		Questions []question `json:"questions"`
	}
	_ = sigsyaml.Unmarshal(text, &form)
	for _, q := range form.Questions {
		for i, asked := range slices.Concat([]question{q}, q.Subquestions) {
			path := n.leaf(asked.Variable, false)
			switch {
			case path == "":
			case i == 0 && asked.Required:
				n.mention(path, rankDocumented+inDemand)
			case i == 0:
				n.mention(path, rankDocumented+inProse)
			default:
				n.mention(path, rankDocumented)
			}
		}
	}
}

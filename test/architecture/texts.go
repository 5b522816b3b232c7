// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

const (
	copyrightLine = "SPDX-FileCopyrightText: The Corbel Authors"
	licenseLine   = "SPDX-License-Identifier: Apache-2.0"
)

// Headers checks that sources start with the license header. Before it there may
// be only what a tool demands at the top: a build constraint or an interpreter.
func Headers(t *Tree) []Violation {
	var found []Violation
	for _, text := range t.Texts {
		comment, ok := commentPrefix(text.Path)
		if !ok {
			continue
		}
		lines := strings.Split(text.Content, "\n")
		for len(lines) > 0 && (strings.HasPrefix(lines[0], "//go:build ") || strings.HasPrefix(lines[0], "#!") || lines[0] == "") {
			lines = lines[1:]
		}
		want := []string{comment + " " + copyrightLine, comment + " " + licenseLine}
		if len(lines) < len(want) || !slices.Equal(lines[:len(want)], want) {
			found = append(found, violation(text.Path, "has to start with %q and %q", want[0], want[1]))
		}
	}
	return found
}

// commentPrefix is how a line comment starts in the kinds of sources that need a
// license header.
func commentPrefix(name string) (string, bool) {
	switch base := path.Base(name); {
	case path.Ext(base) == ".go":
		return "//", true
	case path.Ext(base) == ".sh", path.Ext(base) == ".mk", base == "Makefile", name == ".ci/run":
		return "#", true
	default:
		return "", false
	}
}

// Word is a text that must not be in the repository.
type Word struct {
	Pattern *regexp.Regexp
	Why     string
}

// words are put together from parts, because this file is checked as well.
var words = []Word{
	{regexp.MustCompile(`\b(TO` + `DO|FIX` + `ME|XX` + `X)\b`), "finish it, or open an issue; the code says what is"},
	{regexp.MustCompile(`(^|[\s"'` + "`" + `(=:,])/(wo` + `rk|ro` + `ot|ho` + `me|Us` + `ers)/`), "it is a path of one machine"},
	{regexp.MustCompile(`pro` + `xy\.golang\.org|sum\.golang\.org`), "which module proxy is used is the user's choice"},
	{regexp.MustCompile(`^(<<<<<<<|>>>>>>>) `), "it is left over from a merge"},
}

// Words checks the text of the repository for what does not belong there.
func Words(t *Tree, forbidden []Word) []Violation {
	var found []Violation
	for _, text := range t.Texts {
		if base := path.Base(text.Path); base == "go.sum" || base == "LICENSE" {
			continue
		}
		for number, line := range strings.Split(text.Content, "\n") {
			for _, word := range forbidden {
				if match := word.Pattern.FindString(line); match != "" {
					found = append(found, violation(lineOf(text, number+1), "says %q: %s", strings.TrimSpace(match), word.Why))
				}
			}
		}
	}
	return found
}

// ticLimit is the greatest number of tics in 1,000 lines of comments that Tics accepts. Lower it with the number.
const ticLimit = 29

// tics are words that stand where a noun is missing.
var tics = regexp.MustCompile(`(?i)\b(what|(one|those) that|(that|those) of|others|somebody|nobody)\b`)

// CountTics counts tics and lines of comments of the root module, without tests and generated files.
func CountTics(t *Tree) (found, lines int) {
	for _, p := range t.Packages {
		if first, _, _ := strings.Cut(p.Path, "/"); p.Module != "." || !slices.Contains([]string{"api", "internal", "pkg"}, first) {
			continue
		}
		for _, file := range p.Files {
			if file.Test || strings.HasPrefix(path.Base(file.Path), "zz_generated") {
				continue
			}
			for _, group := range file.Syntax.Comments {
				if strings.Contains(group.Text(), licenseLine) {
					continue
				}
				found += len(tics.FindAllString(strings.ReplaceAll(group.Text(), "What to do:", ""), -1)) // a label of docs/reference
				lines += file.line(group.End()) - file.line(group.Pos()) + 1
			}
		}
	}
	return found, lines
}

// Tics checks that comments do not have more tics than the limit.
func Tics(t *Tree, limit int) []Violation {
	if found, lines := CountTics(t); found*1000 > limit*lines {
		return []Violation{violation("the comments", "%d tics (%s) in %d lines, at most %d in 1,000 are accepted: name the thing or who acts",
			found, tics, lines, limit)}
	}
	return nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"go/ast"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// The keywords that begin a line below the sentences of a doc comment.
const (
	keyOn         = "On"         // the objects that an annotation or label is on
	keySetBy      = "Set by"     // what sets it, if users find it only
	keyLevel      = "Level"      // of an annotation that users set: daily, special or migration
	keyFormat     = "Format"     // of the value
	keyDefault    = "Default"    // what counts if nothing is set
	keyUnit       = "Unit"       // of a number
	keyExample    = "Example"    // of an annotation or label
	keyAlso       = "Also"       // the options and fields that set the same
	keyConditions = "Conditions" // of a component that has the reason
	keyState      = "State"      // of a component that has the reason
	keyEventType  = "Event type" // of an event that has the reason
	keyWhatToDo   = "What to do" // about a reason
	keyLimit      = "Limit"      // what is limited, and what happens beyond it
)

var keywords = []string{
	keyOn, keySetBy, keyLevel, keyFormat, keyDefault, keyUnit, keyExample, keyAlso, keyConditions, keyState, keyEventType, keyWhatToDo, keyLimit,
}

// comment is a doc comment.
type comment struct {
	// paragraphs are the sentences. Examples of code are left out.
	paragraphs []string
	// values are the texts after the keywords.
	values map[string]string
	// markers are the lines for code generators, such as +optional.
	markers []string
}

// parseComment reads a doc comment. A text after a keyword goes on until the next keyword or an empty line.
func parseComment(group *ast.CommentGroup) comment {
	c := comment{values: map[string]string{}}
	key, paragraph := "", ""
	for line := range strings.Lines(group.Text() + "\n") {
		line = strings.TrimRight(line, "\n")
		keyword, rest, hasColon := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "+"):
			c.markers = append(c.markers, line)
		case line == "" && paragraph != "":
			c.paragraphs = append(c.paragraphs, paragraph)
			key, paragraph = "", ""
		case line == "":
			key = ""
		case hasColon && slices.Contains(keywords, keyword):
			if paragraph != "" {
				c.paragraphs = append(c.paragraphs, paragraph)
			}
			key, paragraph = keyword, ""
			c.values[key] = rest
		case key != "":
			c.values[key] += " " + line
		case strings.HasPrefix(line, "\t"):
		case paragraph == "":
			paragraph = line
		default:
			paragraph += " " + line
		}
	}
	return c
}

// paragraphsAbout returns the sentences, with what the code names subject named as the user knows it.
func (c comment) paragraphsAbout(subject, name string) []string {
	paragraphs := slices.Clone(c.paragraphs)
	for i, paragraph := range paragraphs {
		if rest, found := strings.CutPrefix(paragraph, subject+" "); found && i == 0 {
			paragraphs[i] = "`" + name + "` " + escape(rest)
			continue
		}
		paragraphs[i] = escape(paragraph)
	}
	return paragraphs
}

// inTable returns the sentences for a row of a table that names the subject already.
func (c comment) inTable(subject string) string { return escape(c.sentences(subject)) }

// sentences returns the sentences below a title that names the subject already.
func (c comment) sentences(subject string) string {
	text := strings.TrimPrefix(strings.Join(c.paragraphs, " "), subject+" ")
	for _, verb := range []string{"means that ", "is ", "are "} {
		if rest, found := strings.CutPrefix(text, verb); found {
			text = rest
			break
		}
	}
	return capitalized(text)
}

func capitalized(text string) string {
	first, size := utf8.DecodeRuneInString(text)
	return string(unicode.ToUpper(first)) + text[size:]
}

// value returns the text after a keyword, for Markdown.
func (c comment) value(key string) string { return escape(c.values[key]) }

// plainNumber is a default that is followed by its unit.
var plainNumber = regexp.MustCompile(`^[0-9.,]+$`)

// otherwise returns the sentence about the default. There is none if the default is the zero value, or if the
// type of the field has the defaults.
func (c comment) otherwise() string {
	switch value := c.value(keyDefault); {
	case value == "", value == "none", value == "nil", value == "false", strings.HasPrefix(value, "those of "):
		return ""
	case strings.HasPrefix(value, "required"), strings.HasSuffix(value, "it is required"):
		return "Required"
	case plainNumber.MatchString(value):
		return strings.TrimSpace("Default: " + value + " " + c.value(keyUnit))
	default:
		return "Default: " + value
	}
}

// unit returns the sentence about the unit, unless the default has it, as "32 MiB" has.
func (c comment) unit() string {
	if unit := c.value(keyUnit); unit != "" && !plainNumber.MatchString(c.value(keyDefault)) && !strings.HasSuffix(c.value(keyDefault), "iB") {
		return "Unit: " + unit
	}
	return ""
}

// isOptional reports whether a field may be left out.
func (c comment) isOptional() bool { return slices.Contains(c.markers, "+optional") }

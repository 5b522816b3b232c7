// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package sentence

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// Printable returns the text with each character that controls a terminal, or the direction of the text, as the escape of
// JSON, such as \u001b or \u202e. Line feeds and tabs stay. In a text that is JSON the escapes are valid.
func Printable(text string) string {
	if !strings.ContainsFunc(text, controls) {
		return text
	}
	var b strings.Builder
	for _, c := range text {
		switch {
		case !controls(c):
			b.WriteRune(c)
		case c > 0xffff:
			high, low := utf16.EncodeRune(c)
			fmt.Fprintf(&b, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&b, `\u%04x`, c)
		}
	}
	return b.String()
}

// controls reports whether a character does more than to be shown: control characters (Cc), format characters (Cf), and the
// separators of lines and paragraphs.
func controls(c rune) bool {
	return c != '\n' && c != '\t' && (unicode.IsControl(c) || unicode.In(c, unicode.Cf, unicode.Zl, unicode.Zp))
}

// OneLine makes one line of the several that joined errors have.
func OneLine(text string) string {
	var b strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
			continue
		case strings.HasSuffix(b.String(), ":"):
			b.WriteString(" ")
		case b.Len() > 0:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return b.String()
}

// Shorten cuts the text at a character and shows that it did.
func Shorten(text string, limit int) string {
	const ellipsis = "…"
	if len(text) <= limit {
		return text
	}
	limit -= len(ellipsis)
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + ellipsis
}

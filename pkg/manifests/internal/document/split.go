// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package document

import "bytes"

// chunk is the text between two document separators.
type chunk struct {
	text []byte
	// line is the line of the stream in which the text begins, content the
	// first one that holds more than blanks, comments and directives.
	line, content int
}

// split cuts the stream into its documents and leaves out those that hold
// nothing. It works on lines and not with the parser, because the parser gives
// up at the first mistake, and its successors would stay unseen.
func split(data []byte) []chunk {
	var chunks []chunk
	current := chunk{line: 1}
	start := 0
	finish := func(end int) {
		if current.content > 0 {
			current.text = data[start:end]
			chunks = append(chunks, current)
		}
	}
	for line, at := 1, 0; at < len(data); line++ {
		end := at + lineLength(data[at:])
		text := data[at:end]
		switch {
		case isMarker(text, "---"):
			finish(at)
			// What follows the marker in its line belongs to the document.
			start = at + len("---")
			current = chunk{line: line}
			text = text[len("---"):]
		case isMarker(text, "..."):
			finish(at)
			start = end
			current = chunk{line: line + 1}
			text = nil
		}
		if current.content == 0 && holdsContent(text) {
			current.content = line
		}
		at = end
	}
	finish(len(data))
	return chunks
}

// lineLength returns the length of the first line, with its end, which is a line
// feed, a carriage return, or both.
func lineLength(data []byte) int {
	i := bytes.IndexAny(data, "\r\n")
	switch {
	case i < 0:
		return len(data)
	case data[i] == '\r' && i+1 < len(data) && data[i+1] == '\n':
		return i + 2
	}
	return i + 1
}

// isMarker tells whether the line begins with the marker as a word.
func isMarker(line []byte, marker string) bool {
	rest, ok := bytes.CutPrefix(line, []byte(marker))
	return ok && (len(rest) == 0 || bytes.IndexByte([]byte(" \t\r\n"), rest[0]) >= 0)
}

// holdsContent is false for blanks, comments and directives. YAML knows more
// ends of lines than we do; with one of these, the parser has to decide.
func holdsContent(line []byte) bool {
	trimmed := bytes.Trim(line, " \t\r\n")
	isRemark := len(trimmed) == 0 || trimmed[0] == '#' || line[0] == '%'
	return !isRemark || bytes.ContainsAny(line, "\u0085\u2028\u2029")
}

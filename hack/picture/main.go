// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Picture draws what commands print as a terminal, in SVG. It reads the output of the demo on its standard input, and
// shows the first call of each command of corbel that its arguments name.
package main

import (
	"bufio"
	"fmt"
	"html"
	"io"
	"os"
	"slices"
	"strings"
	"unicode/utf8"
)

// The terminal: its columns, and the size of a character in pixels.
const (
	columns    = 112
	charWidth  = 7.3
	lineHeight = 17
	margin     = 16
)

func main() {
	shown := calls(os.Stdin, os.Args[1:])
	if len(shown) == 0 {
		fmt.Fprintln(os.Stderr, "error: the input has no call of these commands:", strings.Join(os.Args[1:], ", "))
		os.Exit(1)
	}
	draw(os.Stdout, shown)
}

// calls returns the lines of the first call of each command, in the order of the input.
func calls(in io.Reader, commands []string) []string {
	var shown []string
	within := false
	scanner := bufio.NewScanner(in)
	for scanner.Scan() {
		line, isOutput := strings.CutPrefix(scanner.Text(), "          ")
		call, isCall := strings.CutPrefix(line, "$ ")
		switch {
		case isCall:
			words := strings.Fields(call)
			i := -1
			if len(words) > 1 && words[0] == "corbel" {
				i = slices.Index(commands, words[1])
			}
			if within = i >= 0; within {
				commands = slices.Delete(slices.Clone(commands), i, i+1)
				if len(shown) > 0 {
					shown = append(shown, "")
				}
			}
		case !isOutput:
			within = false
		}
		if within {
			shown = append(shown, line)
		}
	}
	return shown
}

// draw writes the picture. It follows the colour scheme of the reader.
func draw(out io.Writer, lines []string) {
	width, height := columns*charWidth+2*margin, float64(len(lines)*lineHeight+2*margin)
	fmt.Fprintf(out, `<svg xmlns="http://www.w3.org/2000/svg" width="%.0f" height="%.0f" viewBox="0 0 %.0f %.0f" role="img" aria-label="Commands of corbel and what they print">
<style>
text { font: 12px ui-monospace, SFMono-Regular, Menlo, Consolas, monospace; fill: #1f2328; white-space: pre }
rect { fill: #f6f8fa; stroke: #d1d9e0 }
.command { font-weight: bold }
.bad { fill: #b3261e }
.good { fill: #1a7f37 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } rect { fill: #0d1117; stroke: #3d444d } .bad { fill: #ff7b72 } .good { fill: #56d364 }
}
</style>
<rect x="0.5" y="0.5" width="%.0f" height="%.0f" rx="6"/>
`, width, height, width, height, width-1, height-1)
	for i, line := range lines {
		if utf8.RuneCountInString(line) > columns {
			line = string([]rune(line)[:columns-1]) + "…"
		}
		if line != "" {
			fmt.Fprintf(out, "<text x=\"%d\" y=\"%d\"%s>%s</text>\n", margin, margin+12+i*lineHeight, class(line), html.EscapeString(line))
		}
	}
	fmt.Fprintln(out, "</svg>")
}

// class is how a line is drawn.
func class(line string) string {
	switch {
	case strings.HasPrefix(line, "$ "):
		return ` class="command"`
	case strings.Contains(line, "BackOff"), strings.Contains(line, "is not Ready"):
		return ` class="bad"`
	case strings.HasPrefix(line, "Shop ") && strings.Contains(line, " Ready "):
		return ` class="good"`
	}
	return ""
}

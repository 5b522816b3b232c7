// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corbel-run/corbel/internal/sentence"
)

// gap is between two columns, as with kubectl.
const gap = 3

// fewest is how much of the last column is shown on a narrow terminal, if any.
const fewest = 12

// table prints rows with aligned columns. Rows may come in several batches, such as those of a watch: the columns
// do not get narrower. On a terminal the last column is cut to its width.
type table struct {
	out     io.Writer
	width   int // 0: nothing is cut
	colors  bool
	header  []string
	widths  []int
	printed bool
}

// cell is a text and its colour; 0 is none.
type cell struct {
	text  string
	color color.Attribute
	// whole: nothing is aligned with it, as it is a line of its own or the head of one.
	whole bool
}

func plain(text string) cell { return cell{text: text} }

func colored(text string, attribute color.Attribute) cell { return cell{text: text, color: attribute} }

func (f *frame) table(header ...string) *table {
	return &table{out: f.Out, width: f.width(), colors: f.colors(), header: header, widths: make([]int, len(header))}
}

// print prints rows, after the header if it is the first batch.
func (t *table) print(rows [][]cell) error {
	if !t.printed && len(rows) > 0 && t.header != nil {
		header := make([]cell, len(t.header))
		for i, title := range t.header {
			header[i] = plain(title)
		}
		rows = append([][]cell{header}, rows...)
		t.printed = true
	}
	for _, row := range rows {
		for i := range row {
			row[i].text = inOneLine(row[i].text)
			if !row[i].whole {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].text))
			}
		}
	}
	var out bytes.Buffer
	for _, row := range rows {
		t.row(&out, row)
	}
	_, err := t.out.Write(out.Bytes())
	return err
}

func (t *table) row(out *bytes.Buffer, row []cell) {
	last := len(row) - 1
	for last > 0 && row[last].text == "" {
		last--
	}
	used := 0
	for i := range last + 1 {
		text := row[i].text
		if (i == len(t.widths)-1 || row[i].whole && i == last) && t.width > 0 {
			if text = cut(text, t.width-used); text == "" {
				break
			}
		}
		if i > 0 {
			out.WriteString(strings.Repeat(" ", gap))
		}
		t.colored(out, text, row[i].color)
		if i < last {
			out.WriteString(strings.Repeat(" ", max(t.widths[i]-utf8.RuneCountInString(text), 0)))
		}
		used += max(t.widths[i], utf8.RuneCountInString(text)) + gap
	}
	trimmed := bytes.TrimRight(out.Bytes(), " ")
	out.Truncate(len(trimmed))
	out.WriteByte('\n')
}

func (t *table) colored(out *bytes.Buffer, text string, attribute color.Attribute) {
	if !t.colors || attribute == 0 {
		out.WriteString(text)
		return
	}
	painter := color.New(attribute)
	painter.EnableColor() // the frame knows whether the output shows colours
	out.WriteString(painter.Sprint(text))
}

// cut returns what fits into a width: nothing if it would be too little to read.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < fewest {
		return ""
	}
	return strings.TrimRight(string([]rune(text)[:width-1]), " ") + "…"
}

// oneLine returns a text in one line, without what controls a terminal.
func oneLine(text string) string {
	return inOneLine(strings.Join(strings.Fields(text), " "))
}

// lineEnds are those of a text; the branches of a tree start with spaces, which stay.
var lineEnds = strings.NewReplacer("\r\n", " ", "\n", " ", "\r", " ", "\t", " ", "\f", " ", "\v", " ")

func inOneLine(text string) string { return sentence.Printable(lineEnds.Replace(text)) }

// age says how long ago something was, as kubectl does.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(now.Sub(since))
}

// count says how many things there are.
func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

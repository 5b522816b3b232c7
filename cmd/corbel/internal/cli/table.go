// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fatih/color"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/corbel-run/corbel/internal/sentence"
)

// gap is between two columns, as with kubectl.
const gap = 3

const (
	// enough is how much of the last column is shown before optional columns are.
	enough = 40
	// fewest is the shortest text that a cell is cut to.
	fewest = 5
)

// table prints rows with aligned columns. Rows may come in several batches, such as those of a watch: the columns
// do not get narrower. On a terminal no line is wider than it: optional columns are left out, then the end of the line is cut.
type table struct {
	out     io.Writer
	width   int // 0: nothing is cut
	colors  bool
	header  []string
	widths  []int
	left    []bool // columns that are left out
	printed bool
	// optional are the titles of the columns that a narrow terminal does not show, the least important first.
	optional []string
	// cut are the titles of the columns that are cut to a width if the last one does not fit beside them, even without the optional ones.
	cut map[string]int
	// distinct: a line like the one before is not printed.
	distinct bool
	limits   []int // widths that columns are cut to; 0: they are not cut
	last     string
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
	return &table{out: f.Out, width: f.width(), colors: f.colors(), header: header, widths: make([]int, len(header)), left: make([]bool, len(header))}
}

// print prints rows, after the header if it is the first batch.
func (t *table) print(rows [][]cell) error {
	first := !t.printed && len(rows) > 0 && t.header != nil
	if first {
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
			if t.limits != nil && t.limits[i] > 0 && !row[i].whole {
				row[i].text = cut(row[i].text, t.limits[i])
			}
			if !row[i].whole {
				t.widths[i] = max(t.widths[i], utf8.RuneCountInString(row[i].text))
			}
		}
	}
	if first {
		t.leaveOut()
		t.limit(rows)
	}
	var out, line bytes.Buffer
	for _, row := range rows {
		line.Reset()
		t.row(&line, row)
		if text := line.String(); !t.distinct || text != t.last {
			out.WriteString(text)
			t.last = text
		}
	}
	_, err := t.out.Write(out.Bytes())
	return err
}

// leaveOut leaves out optional columns, until enough of the last one fits.
func (t *table) leaveOut() {
	for _, title := range t.optional {
		if t.fits() {
			return
		}
		if i := slices.Index(t.header, title); i >= 0 {
			t.left[i] = true
		}
	}
}

// fits reports whether enough of the last column fits.
func (t *table) fits() bool {
	needed, last := 0, 0
	for i, width := range t.widths {
		if !t.left[i] {
			needed, last = needed+width+gap, width
		}
	}
	return t.width == 0 || needed-gap-last+min(last, enough) <= t.width
}

// limit cuts the cells of columns, if enough of the last one does not fit otherwise.
func (t *table) limit(rows [][]cell) {
	if t.fits() || t.cut == nil {
		return
	}
	t.limits = make([]int, len(t.header))
	for i, title := range t.header {
		width, limited := t.cut[title]
		if !limited || t.widths[i] <= width {
			continue
		}
		t.limits[i], t.widths[i] = width, width
		for _, row := range rows {
			if !row[i].whole {
				row[i].text = cut(row[i].text, width)
			}
		}
	}
}

func (t *table) row(out *bytes.Buffer, row []cell) {
	last := len(row) - 1
	for last > 0 && (row[last].text == "" || t.left[last]) {
		last--
	}
	used, before := 0, 0
	for i := range last + 1 {
		if t.left[i] {
			continue
		}
		text := row[i].text
		if t.width > 0 {
			if text = cut(text, t.width-used); text == "" && row[i].text != "" {
				break
			}
		}
		out.WriteString(strings.Repeat(" ", used-before))
		t.colored(out, text, row[i].color)
		before = used + utf8.RuneCountInString(text)
		used = max(used+t.widths[i], before) + gap
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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"strconv"
	"strings"
)

// table is one of Markdown. Rows that say nothing are left out.
type table struct {
	head []string
	rows [][]string
}

func (t *table) add(title string, cells ...string) {
	if strings.Join(cells, "") != "" {
		t.rows = append(t.rows, append([]string{title}, cells...))
	}
}

// String returns the table.
func (t *table) String() string {
	var out strings.Builder
	line := func(cells []string) { fmt.Fprintf(&out, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	rule := make([]string, len(t.head))
	for i := range rule {
		rule[i] = "---:"
	}
	rule[0] = "---"
	line(rule)
	for _, row := range t.rows {
		line(row)
	}
	return out.String()
}

// filled returns the table, or nothing if it has no rows.
func (t *table) filled() string {
	if len(t.rows) == 0 {
		return ""
	}
	return t.String()
}

// verdict is a goal and whether it is reached; empty if there is none, or no samples.
func verdict(samples Samples, goal string, reached bool) string {
	if len(samples) == 0 || goal == "" {
		return ""
	}
	return mark(reached) + " " + goal
}

func mark(reached bool) string {
	if reached {
		return "✓"
	}
	return "✗"
}

// value is a text, or empty if there are no samples.
func value(samples Samples, text string) string {
	if len(samples) == 0 {
		return ""
	}
	return text
}

// duration has three digits or so.
func duration(seconds float64) string {
	switch {
	case seconds < 0.1:
		return fmt.Sprintf("%.1f ms", seconds*1000)
	case seconds < 1:
		return fmt.Sprintf("%.0f ms", seconds*1000)
	default:
		return fmt.Sprintf("%.2f s", seconds)
	}
}

func mebibytes(bytes float64) string { return fmt.Sprintf("%.1f MiB", bytes/(1<<20)) }

// grouped separates the thousands.
func grouped(n int) string {
	text := strconv.Itoa(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/constant"
	"go/printer"
	"go/token"
	"strconv"
	"strings"
	"time"
)

// page is the text of a Markdown file.
type page struct{ strings.Builder }

// newPage begins a page with its title and an introduction.
func newPage(title, introduction string) *page {
	p := &page{}
	p.line("<!-- Written by make generate from the comments of the sources. Do not edit. -->\n\n# %s\n\n%s", title, introduction)
	return p
}

func (p *page) line(format string, args ...any) {
	fmt.Fprintf(&p.Builder, format+"\n", args...)
}

// table begins a table with the given columns.
func (p *page) table(columns ...string) {
	p.line("\n| %s |\n|%s", strings.Join(columns, " | "), strings.Repeat("---|", len(columns)))
}

// row adds a row. The cells are Markdown already.
func (p *page) row(cells ...string) { p.line("| %s |", strings.Join(cells, " | ")) }

// item adds a line of a list. The texts are Markdown already; further sentences follow the meaning.
func (p *page) item(name, meaning string, further ...string) {
	meaning = strings.TrimSuffix(meaning, ".")
	for _, text := range further {
		if text != "" {
			meaning += ". " + strings.TrimSuffix(text, ".")
		}
	}
	p.line("- %s: %s.", name, meaning)
}

// typed returns a name and a type as code.
func typed(name, typ string) string { return code(name) + " " + code(typ) }

// code returns a text as code.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(text, "|", `\|`) + "`"
}

// escape keeps Markdown from reading a text of the sources as anything but text.
func escape(text string) string {
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "[", `\[`, "`", "\\`").Replace(text)
}

// text returns an expression as it is written in the sources.
func text(expression ast.Expr) string {
	var b bytes.Buffer
	if err := printer.Fprint(&b, token.NewFileSet(), expression); err != nil {
		return ""
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// number returns the value of a constant as people write it: with a unit, or with commas.
func (c *constantOf) number() string {
	if c.value == nil {
		return ""
	}
	n, exact := constant.Int64Val(constant.ToInt(c.value))
	switch {
	case !exact:
		return c.value.String()
	case c.comment.values[keyUnit] != "":
		return grouped(n) + " " + c.comment.values[keyUnit]
	case c.duration:
		return duration(time.Duration(n))
	case c.size:
		return size(n)
	}
	return grouped(n)
}

func duration(d time.Duration) string {
	for _, unit := range []struct {
		length time.Duration
		name   string
	}{{365 * 24 * time.Hour, "year"}, {time.Hour, "hour"}, {time.Minute, "minute"}, {time.Second, "second"}, {time.Millisecond, "millisecond"}} {
		if n := int64(d / unit.length); n > 0 && d%unit.length == 0 {
			return strings.TrimSuffix(grouped(n)+" "+unit.name+"s", map[bool]string{true: "s"}[n == 1])
		}
	}
	return d.String()
}

func size(n int64) string {
	for _, unit := range []struct {
		shift int
		name  string
	}{{30, "GiB"}, {20, "MiB"}, {10, "KiB"}} {
		if n >= 1<<unit.shift && n%(1<<unit.shift) == 0 {
			return grouped(n>>unit.shift) + " " + unit.name
		}
	}
	return grouped(n) + " bytes"
}

// grouped returns a number with commas between thousands.
func grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

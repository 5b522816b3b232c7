// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
)

// event is an event of go test -json, see go doc test2json.
type event struct {
	Action  string
	Package string
	Test    string
	Elapsed float64 // seconds
	Output  string
}

// printer prints the events of go test -json as go test without -v does: the
// output of failed tests, and one line for each package.
type printer struct {
	out, record io.Writer
	// pending holds, by package, the output that is not printed yet.
	pending map[string][]event
	failed  bool
}

func newPrinter(out, record io.Writer) *printer {
	return &printer{out: out, record: record, pending: map[string][]event{}}
}

// print handles one line of the output of go test -json.
func (p *printer) print(line []byte) {
	var e event
	if err := json.Unmarshal(line, &e); err != nil || e.Action == "" {
		p.out.Write(line)
		return
	}
	switch e.Action {
	case "build-output":
		fmt.Fprint(p.out, e.Output)
	case "build-fail":
		p.failed = true
	case "output":
		p.pending[e.Package] = append(p.pending[e.Package], e)
	case "pass", "skip", "fail":
		p.failed = p.failed || e.Action == "fail"
		p.recordTime(e)
		if e.Test == "" {
			p.endPackage(e)
		} else {
			p.endTest(e)
		}
	}
}

func (p *printer) recordTime(e event) {
	if e.Elapsed > 0 && e.Action != "skip" {
		fmt.Fprintf(p.record, "%.2f\t%s\t%s\n", e.Elapsed, e.Package, e.Test)
	}
}

// endTest drops the output of a test that passed, and prints that of a failed one
// that is not a subtest. The output of a failed subtest is printed with the test.
func (p *printer) endTest(e event) {
	subtest := strings.Contains(e.Test, "/")
	if subtest && e.Action == "fail" {
		return
	}
	p.pending[e.Package] = slices.DeleteFunc(p.pending[e.Package], func(o event) bool {
		mine := o.Test == e.Test || strings.HasPrefix(o.Test, e.Test+"/")
		if mine && e.Action == "fail" {
			p.printOutput(o.Output)
		}
		return mine
	})
}

// endPackage prints the result line of a package. If the package failed, all its
// output that is left is printed: a panic and a timeout end tests without an event.
func (p *printer) endPackage(e event) {
	pending := p.pending[e.Package]
	delete(p.pending, e.Package)
	for i, o := range pending {
		if e.Action == "fail" || i == len(pending)-1 {
			p.printOutput(o.Output)
		}
	}
}

func (p *printer) printOutput(text string) {
	for _, progress := range []string{"=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME "} {
		if strings.HasPrefix(text, progress) {
			return
		}
	}
	fmt.Fprint(p.out, text)
}

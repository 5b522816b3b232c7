// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"cmp"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
)

// took is how long a package, or a test of it, took.
type took struct {
	seconds float64
	pkg     string
	test    string // empty for the package
}

// printSlowest prints the slowest packages and tests of a file that test wrote.
// Subtests do not count: their time is part of the test's.
func printSlowest(out io.Writer, record io.Reader, n int) error {
	var packages, tests []took
	lines := bufio.NewScanner(record)
	for lines.Scan() {
		fields := strings.Split(lines.Text(), "\t")
		if len(fields) != 3 || strings.Contains(fields[2], "/") {
			continue
		}
		seconds, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return fmt.Errorf("the time %q is no number: %w", fields[0], err)
		}
		if t := (took{seconds, fields[1], fields[2]}); t.test == "" {
			packages = append(packages, t)
		} else {
			tests = append(tests, t)
		}
	}
	for _, list := range []struct {
		title string
		times []took
	}{{"packages", packages}, {"tests", tests}} {
		slices.SortStableFunc(list.times, func(a, b took) int { return cmp.Compare(b.seconds, a.seconds) })
		fmt.Fprintf(out, "\nslowest %s:\n", list.title)
		for _, t := range list.times[:min(n, len(list.times))] {
			fmt.Fprintf(out, "%8.1fs  %s\n", t.seconds, strings.TrimSpace(t.pkg+" "+t.test))
		}
	}
	return lines.Err()
}

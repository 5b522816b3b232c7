// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Gotest runs go test, prints what go test prints, and records how long packages
// and tests take.
//
//	gotest [-times FILE] go test [arguments]
//	gotest -slowest N -times FILE
//
// The first form appends the times to the file and exits with the status of go
// test. The second form prints the N slowest packages and tests of the file.
package main

import (
	"bufio"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
)

func main() {
	times := flag.String("times", "", "`file` of the times")
	slowest := flag.Int("slowest", 0, "print the slowest `n` packages and tests of the file")
	flag.Parse()
	code, err := run(*times, *slowest, flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "gotest:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func run(times string, slowest int, command []string) (int, error) {
	if slowest > 0 {
		file, err := os.Open(times)
		if err != nil {
			return 1, err
		}
		defer file.Close()
		return 0, printSlowest(os.Stdout, file, slowest)
	}
	if len(command) < 2 || command[1] != "test" {
		return 2, errors.New("the arguments must be a go test command")
	}
	record := io.Discard
	if times != "" {
		file, err := os.OpenFile(times, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			return 1, err
		}
		defer file.Close()
		record = file
	}
	return test(slices.Insert(slices.Clone(command), 2, "-json"), os.Stdout, record)
}

// test runs a go test -json command and returns its exit status.
func test(command []string, out, record io.Writer) (int, error) {
	c := exec.Command(command[0], command[1:]...)
	c.Stderr = os.Stderr
	events, err := c.StdoutPipe()
	if err != nil {
		return 1, err
	}
	if err := c.Start(); err != nil {
		return 1, err
	}
	p := newPrinter(out, record)
	lines := bufio.NewReader(events)
	for {
		line, err := lines.ReadBytes('\n')
		if len(line) > 0 {
			p.print(line)
		}
		if err != nil {
			break // the end, or a failure that Wait reports
		}
	}
	err = c.Wait()
	if p.failed {
		fmt.Fprintln(out, "FAIL")
	}
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil // -1 after a signal
	}
	if err != nil {
		return 1, err
	}
	if p.failed {
		return 1, errors.New("go test reported a failure and exited with status 0")
	}
	return 0, nil
}

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

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"regexp"
	"strings"
)

// verdict is the result of a test.
type verdict struct {
	outcome string // "ok", or why not
	took    string // in seconds
}

var (
	resultLine = regexp.MustCompile(`^\s*--- (PASS|FAIL|SKIP): (\S+) \((\S+)s\)$`)
	// testLine names the test that the next lines are of.
	testLine = regexp.MustCompile(`^=== (?:RUN|NAME|CONT)\s+(\S+)$`)
)

// verdictsOf reads the results of tests, also of sub-tests, from their verbose output.
func verdictsOf(output string) map[string]verdict {
	verdicts, printed, name := map[string]verdict{}, map[string][]string{}, ""
	for line := range strings.SplitSeq(output, "\n") {
		if found := testLine.FindStringSubmatch(line); found != nil {
			name = found[1]
			continue
		}
		found := resultLine.FindStringSubmatch(line)
		switch {
		case found == nil:
			printed[name] = append(printed[name], line)
		case found[1] == "PASS":
			verdicts[found[2]] = verdict{"ok", found[3]}
		default:
			verdicts[found[2]] = verdict{reason(strings.Join(printed[found[2]], "\n")), found[3]}
		}
	}
	return verdicts
}

// rights reads from the output of the tests how many requests were refused, and how many kinds the sample did not
// create, of those that the role lets the operator create.
func rights(output string) (refused, unused int) {
	section := ""
	for line := range strings.SplitSeq(output, "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasSuffix(line, "refused, without harm:"):
			section = "refused"
		case strings.HasSuffix(line, "rules that no request used:"):
			section = "unused"
		case section == "refused" && strings.Contains(line, " /api"):
			refused++
		case section == "unused" && strings.HasPrefix(line, "- {apiGroups:"):
			if strings.Contains(line, "create") && strings.Contains(line, "delete") { // not events and leases
				unused++
			}
		default:
			section = ""
		}
	}
	return refused, unused
}

// telling returns the lines of the output of a command that say what has failed, or its end.
func telling(output string) string {
	lines := strings.Split(strings.TrimSpace(output), "\n")
	for n, line := range lines {
		if strings.Contains(line, "--- FAIL") || strings.HasPrefix(line, "error:") {
			return strings.Join(lines[n:], "\n")
		}
	}
	return strings.Join(lines[max(0, len(lines)-5):], "\n")
}

// describe returns "ok", or an error for the cell of a table.
func describe(err error) string {
	if err == nil {
		return "ok"
	}
	return reason(err.Error())
}

// reason returns the beginning of a text in one line, for the cell of a table.
func reason(text string) string {
	short := []rune(strings.Join(strings.Fields(strings.ReplaceAll(text, "|", "/")), " "))
	return string(short[:min(len(short), 300)])
}

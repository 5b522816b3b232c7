// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import "strings"

const (
	maxLines  = 20  // lines
	maxLength = 200 // of a line, in bytes
)

// stderr keeps what the Go runtime writes to the standard error of a process before it
// gives up, or the race detector, and nothing else: other lines may hold anything.
type stderr struct {
	lines []string
	line  []byte
}

// Write implements io.Writer.
func (s *stderr) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			s.keep(string(s.line))
			s.line = s.line[:0]
		} else if len(s.line) < maxLength {
			s.line = append(s.line, b)
		}
	}
	return len(p), nil
}

func (s *stderr) keep(line string) {
	switch {
	case len(s.lines) == maxLines:
	case strings.HasPrefix(line, "panic: "):
		s.lines = append(s.lines, "a panic in one of its goroutines")
	case strings.HasPrefix(line, "fatal error: "), strings.Contains(line, "ThreadSanitizer"), strings.HasPrefix(line, "runtime: "):
		s.lines = append(s.lines, line)
	}
}

func (s *stderr) all() string { return strings.Join(s.lines, "\n") }

func (s *stderr) first() string {
	if len(s.lines) == 0 {
		return ""
	}
	return s.lines[0]
}

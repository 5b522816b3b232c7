// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package confined

import "strings"

const (
	maxWords  = 20  // lines
	maxLength = 200 // of a line, in bytes
)

// words keeps what the Go runtime writes to the standard error of a process before it
// gives up, or the race detector, and nothing else: other lines may hold anything.
type words struct {
	lines []string
	line  []byte
}

// Write implements io.Writer.
func (w *words) Write(p []byte) (int, error) {
	for _, b := range p {
		if b == '\n' {
			w.keep(string(w.line))
			w.line = w.line[:0]
		} else if len(w.line) < maxLength {
			w.line = append(w.line, b)
		}
	}
	return len(p), nil
}

func (w *words) keep(line string) {
	switch {
	case len(w.lines) == maxWords:
	case strings.HasPrefix(line, "panic: "):
		w.lines = append(w.lines, "a panic in one of its goroutines")
	case strings.HasPrefix(line, "fatal error: "), strings.Contains(line, "ThreadSanitizer"), strings.HasPrefix(line, "runtime: "):
		w.lines = append(w.lines, line)
	}
}

func (w *words) all() string { return strings.Join(w.lines, "\n") }

func (w *words) first() string {
	if len(w.lines) == 0 {
		return ""
	}
	return w.lines[0]
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"
)

const (
	bold  = "\x1b[1m"
	plain = "\x1b[0m"
)

// screen shows the story. On a terminal the titles are bold.
type screen struct {
	out      io.Writer
	terminal bool
	start    time.Time
	now      func() time.Time
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb" && os.Getenv("NO_COLOR") == ""
	return &screen{out: out, terminal: terminal, start: time.Now(), now: time.Now}
}

// title prints the title of a step.
func (s *screen) title(text string) {
	if s.terminal {
		text = bold + text + plain
	}
	fmt.Fprintln(s.out)
	s.say("%s", text)
}

// say prints a line with the time since the start.
func (s *screen) say(format string, args ...any) {
	fmt.Fprintf(s.out, "[%6.1fs] %s\n", s.now().Sub(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// text prints lines that belong to what was said before.
func (s *screen) text(format string, args ...any) {
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(s.out, "          %s\n", strings.TrimRight(line, "\n"))
	}
}

// lines is a writer that shows lines as a command prints them, and keeps them.
type lines struct {
	screen *screen

	mu   sync.Mutex
	kept strings.Builder
	rest []byte // a line that is not complete
}

// Write implements io.Writer.
func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.kept.Write(p)
	l.rest = append(l.rest, p...)
	for {
		line, rest, complete := bytes.Cut(l.rest, []byte("\n"))
		if !complete {
			return len(p), nil
		}
		l.screen.text("%s", line)
		l.rest = rest
	}
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
)

// Terminal control: long lines must not wrap while the tree is drawn, else it
// would be unknown how many lines up it starts.
const (
	wrapOff    = "\x1b[?7l"
	wrapOn     = "\x1b[?7h"
	upAndClear = "\x1b[%dA\x1b[J"
	bold       = "\x1b[1m"
	plain      = "\x1b[0m"
)

// screen shows the story. On a terminal the tree changes in place; elsewhere, each
// change is a line.
type screen struct {
	out      io.Writer
	terminal bool
	start    time.Time
	now      func() time.Time

	shown view     // what was drawn last
	lines []string // the tree on the terminal that the next one replaces
}

func newScreen(out *os.File) *screen {
	info, err := out.Stat()
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "" && os.Getenv("TERM") != "dumb"
	return &screen{out: out, terminal: terminal, start: time.Now(), now: time.Now}
}

// title prints the title of a step.
func (s *screen) title(text string) {
	s.lines = nil
	if s.terminal {
		text = bold + text + plain
	}
	fmt.Fprintln(s.out)
	s.say("%s", text)
}

// say prints a line with the time since the start.
func (s *screen) say(format string, args ...any) {
	s.lines = nil
	fmt.Fprintf(s.out, "[%6.1fs] %s\n", s.now().Sub(s.start).Seconds(), fmt.Sprintf(format, args...))
}

// text prints lines that belong to what was said before.
func (s *screen) text(format string, args ...any) {
	s.lines = nil
	for line := range strings.Lines(fmt.Sprintf(format, args...)) {
		fmt.Fprintf(s.out, "          %s\n", strings.TrimRight(line, "\n"))
	}
}

// draw shows what changed.
func (s *screen) draw(v view) {
	if !s.terminal {
		for _, line := range changes(s.shown, v) {
			s.say("  %s", line)
		}
		s.shown = v
		return
	}
	lines := tree(v)
	if s.lines != nil && slices.Equal(lines, s.lines) {
		return
	}
	if len(s.lines) > 0 {
		fmt.Fprintf(s.out, upAndClear, len(s.lines))
	}
	fmt.Fprint(s.out, wrapOff)
	for _, line := range lines {
		fmt.Fprintf(s.out, "          %s\n", line)
	}
	fmt.Fprint(s.out, wrapOn)
	s.lines, s.shown = lines, v
}

// endStep shows the tree at the end of a step. A terminal shows it already.
func (s *screen) endStep(v view) {
	s.draw(v)
	if !s.terminal {
		s.text("%s", strings.Join(tree(v), "\n"))
	}
	s.lines = nil
}

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package architecture

import "fmt"

// Violation is one rule broken in one place.
type Violation struct {
	// Where is a package or a file, with a line if there is one.
	Where string
	// What is broken and what to do about it.
	What string
}

// String is the line that the test prints.
func (v Violation) String() string { return v.Where + ": " + v.What }

func violation(where, format string, args ...any) Violation {
	return Violation{Where: where, What: fmt.Sprintf(format, args...)}
}

func at(f *File, line int) string { return fmt.Sprintf("%s:%d", f.Path, line) }

func lineOf(text *Text, line int) string { return fmt.Sprintf("%s:%d", text.Path, line) }

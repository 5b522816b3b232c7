// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"errors"
	"os"
	"time"
)

// marker is the name of the child, in place of the path of the program. The environment cannot mark
// it, because it is empty.
const marker = "corbel-subprocess"

// answerDescriptor is where the child writes its answer. The output of the work cannot get between.
const answerDescriptor = 3

// Limits are the limits of a child.
type Limits struct {
	// Time is from the start of the child to the end of its answer.
	Time time.Duration
	// Processor is the time of the processor.
	Processor time.Duration
	// Memory is in bytes, in addition to the memory that the program takes when it starts.
	Memory int64
	// Output is the size of the answer in bytes.
	Output int64
}

// ErrMemory, ErrTime and ErrOutput name the limit that a child exceeded.
var (
	ErrMemory = errors.New("it needed more memory than it may have")
	ErrTime   = errors.New("it took more time than it may")
	ErrOutput = errors.New("its answer is longer than it may be")
)

// IsChild reports whether this process is a child.
func IsChild() bool { return len(os.Args) > 0 && os.Args[0] == marker }

// header is the beginning of the child's input. The work follows.
type header struct {
	Size   int64
	Limits Limits
}

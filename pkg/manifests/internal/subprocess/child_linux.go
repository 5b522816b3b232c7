// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"context"
	"encoding/binary"
	"io"
	"os"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// reserved is address space that the Go runtime takes but does not use.
const reserved = 128 << 20

// Serve does the work of a child and ends the process.
func Serve(work func(ctx context.Context, work []byte) (answer []byte)) {
	syscall.CloseOnExec(answerDescriptor)
	closeInherited()
	// When memory runs short, the child goes first and not the operator.
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0)
	var h header
	if err := binary.Read(os.Stdin, binary.BigEndian, &h); err != nil {
		os.Exit(1)
	}
	request := make([]byte, h.Size)
	if _, err := io.ReadFull(os.Stdin, request); err != nil {
		os.Exit(1)
	}
	go endWithParent()
	ctx, cancel := context.WithTimeout(context.Background(), h.Limits.Time)
	defer cancel()
	limit(h.Limits)
	answer := work(ctx, request)
	out := os.NewFile(answerDescriptor, "answer")
	message := binary.BigEndian.AppendUint64(nil, uint64(len(answer)))
	if _, err := out.Write(message); err != nil {
		os.Exit(1)
	}
	if _, err := out.Write(answer); err != nil {
		os.Exit(1)
	}
	os.Exit(0)
}

// endWithParent ends this process when the other side of the pipe is closed.
func endWithParent() {
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(1)
}

// closeInherited closes the files that the parent has open and did not mean to hand on: all that
// survived the start of this program and so are not marked to be closed by the start of one. Files
// that this process has opened itself are marked.
func closeInherited() {
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		os.Exit(1)
	}
	for _, entry := range entries {
		descriptor, err := strconv.Atoi(entry.Name())
		if err != nil || descriptor <= answerDescriptor {
			continue
		}
		flags, _, errno := syscall.Syscall(syscall.SYS_FCNTL, uintptr(descriptor), syscall.F_GETFD, 0)
		if errno == 0 && flags&syscall.FD_CLOEXEC == 0 {
			_ = syscall.Close(descriptor)
		}
	}
}

// limit lets the process take so many bytes more than it has by now. The garbage
// collector tries to stay below; a process that needs more ends, because the Go runtime gives up
// when it gets none. The kernel kills a process that exceeds its time of the processor.
func limit(limits Limits) {
	bytes := limits.Memory
	debug.SetMemoryLimit(bytes)
	debug.SetMaxStack(int(bytes / 2))
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		os.Exit(1)
	}
	pages, _, _ := strings.Cut(string(statm), " ")
	taken, err := strconv.ParseUint(pages, 10, 64)
	if err != nil {
		os.Exit(1)
	}
	space := taken*uint64(os.Getpagesize()) + uint64(bytes) + reserved
	for _, limit := range []struct {
		resource int
		value    uint64
	}{{syscall.RLIMIT_AS, space}, {syscall.RLIMIT_CORE, 0}, {syscall.RLIMIT_CPU, uint64(max(1, limits.Processor/time.Second))}} {
		if err := syscall.Setrlimit(limit.resource, &syscall.Rlimit{Cur: limit.value, Max: limit.value}); err != nil {
			os.Exit(1)
		}
	}
}

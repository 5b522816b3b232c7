// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package subprocess

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

// leftOpen is how long processes that left the group of the child may keep its
// standard error open.
const leftOpen = time.Second

// rounding is by how much the kernel may count less time of the processor for a process that it has
// killed.
const rounding = time.Second / 4

// Run gives the work to a child and returns its answer. The child is killed, with every process
// that it started and that stayed in its group, when it exceeds its limits or when the context
// ends. It returns errors of this package, the error of the context, or an error about a process
// that could not be started.
func Run(ctx context.Context, work []byte, limits Limits) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	limited, cancel := context.WithTimeoutCause(ctx, limits.Time, ErrTime)
	defer cancel()
	c, err := start()
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(limited, c.kill)
	defer stop()
	go c.send(work, limits)
	answer, readErr := io.ReadAll(io.LimitReader(c.answer, answerHeader+limits.Output+1))
	status := c.end()
	answer, whole := open(answer, limits.Output)
	switch {
	case whole:
		return answer, nil
	case int64(len(answer)) > limits.Output:
		return nil, ErrOutput
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case limited.Err() != nil || status.UserTime()+status.SystemTime()+rounding >= limits.Processor:
		return nil, ErrTime
	case readErr != nil:
		return nil, readErr
	}
	return nil, c.death(status)
}

// answerHeader is the size of the header of an answer, which holds its length.
const answerHeader = 8

// open returns the answer, and whether all of it is there.
func open(sent []byte, limit int64) (answer []byte, whole bool) {
	if len(sent) < answerHeader {
		return nil, false
	}
	size, answer := binary.BigEndian.Uint64(sent), sent[answerHeader:]
	return answer, uint64(len(answer)) == size && size <= uint64(limit)
}

type child struct {
	command *exec.Cmd
	work    io.WriteCloser
	answer  *os.File
	stderr  stderr

	mu    sync.Mutex
	ended bool // and its number may belong to another process
}

func start() (*child, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer write.Close()
	c := &child{answer: read}
	// The file of the program may have been replaced since it was started.
	c.command = exec.Command("/proc/self/exe")
	c.command.Args = []string{marker}
	c.command.Env = []string{}
	c.command.ExtraFiles = []*os.File{write}
	c.command.Stderr = &c.stderr
	c.command.WaitDelay = leftOpen
	c.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if c.work, err = c.command.StdinPipe(); err == nil {
		err = c.command.Start()
	}
	if err != nil {
		read.Close()
		return nil, err
	}
	return c, nil
}

// send leaves the pipe open: the child ends when it is closed, and so also when this
// process is killed.
func (c *child) send(work []byte, limits Limits) {
	var message bytes.Buffer
	_ = binary.Write(&message, binary.BigEndian, header{Size: int64(len(work)), Limits: limits})
	// If the child does not read it, there is no answer.
	_, _ = c.work.Write(message.Bytes())
	_, _ = c.work.Write(work)
}

func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.ended {
		_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL)
	}
}

// end is called when there is nothing more to read: the process is about to end by itself, which
// keeps its status, or has to. It kills the rest of the group before another process can get its
// number.
func (c *child) end() *os.ProcessState {
	c.kill()
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = c.command.Wait()
	c.ended = true
	c.answer.Close()
	return c.command.ProcessState
}

// death returns the reason why a child ended.
func (c *child) death(state *os.ProcessState) error {
	// The last two come from the race detector.
	for _, sign := range []string{"out of memory", "cannot allocate memory", "errno=12", "address space collisions", "ThreadSanitizer"} {
		if strings.Contains(c.stderr.all(), sign) {
			return ErrMemory
		}
	}
	text := fmt.Sprintf("its process ended without an answer (%s)", state)
	status, _ := state.Sys().(syscall.WaitStatus)
	switch {
	case status.Signaled() && status.Signal() == syscall.SIGKILL:
		text += ": it was killed; perhaps the memory of the container was used up"
	case len(c.stderr.lines) > 0:
		text += ": " + c.stderr.lines[0]
	}
	return errors.New(text)
}

const (
	maxLines  = 20  // lines
	maxLength = 200 // of a line, in bytes
)

// stderr keeps the lines that the Go runtime writes to the standard error of a process before it
// gives up, or the race detector, and nothing else: other lines may hold anything.
type stderr struct {
	lines []string
	line  []byte
}

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

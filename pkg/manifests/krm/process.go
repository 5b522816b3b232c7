// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/corbel-run/corbel/internal/renders"
	"github.com/corbel-run/corbel/pkg/manifests/internal/excess"
	"github.com/corbel-run/corbel/pkg/manifests/internal/timeout"
)

// run runs the function with an input and returns its output.
func (f Function) run(ctx context.Context, input []byte) (output []byte, err error) {
	renders.NoteProgress(ctx, f.label())
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, context.DeadlineExceeded)
	defer cancel()
	stdout := &limited{limit: f.OutputBytes, exceeded: cancel}
	stderr := &tail{limit: maxComplaint}
	// The author of the operator chooses the program.
	command := exec.CommandContext(ctx, f.Path, f.Args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), stdout, stderr
	command.Dir = f.Directory
	command.Env = append([]string{}, f.Environment...) // nil would be the operator's own
	// Processes that it started may outlive it and keep its output open.
	command.WaitDelay = time.Second
	ownGroup(command)
	err = command.Run()
	if command.Process != nil {
		endGroup(command.Process.Pid)
	}
	var exit *exec.ExitError
	switch {
	case stdout.tooLarge:
		return nil, &excess.Error{Message: fmt.Sprintf("%s: it wrote more than %d bytes", f.label(), f.OutputBytes)}
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &timeout.Error{Generator: f.label(), After: time.Since(start), Err: ctx.Err()}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", f.label(), ctx.Err())
	case errors.As(err, &exit):
		failed := &exitError{Function: f.label(), Code: exit.ExitCode(), Complaint: stderr.String()}
		if list, parseErr := parse(stdout.data.Bytes()); parseErr == nil {
			failed.Results = list.results
		}
		return nil, failed
	case errors.Is(err, exec.ErrWaitDelay):
		return nil, fmt.Errorf("%s: it ended, but left processes behind that keep its output open", f.label())
	case err != nil:
		return nil, fmt.Errorf("%s: %w", f.label(), err)
	}
	return stdout.data.Bytes(), nil
}

// limited keeps the written bytes up to a limit.
type limited struct {
	data     bytes.Buffer
	limit    int64
	tooLarge bool
	exceeded func()
}

func (l *limited) Write(data []byte) (int, error) {
	if int64(l.data.Len()+len(data)) > l.limit {
		l.tooLarge = true
		l.exceeded()
		return 0, errors.New("it is too much")
	}
	return l.data.Write(data)
}

// tail keeps the end of the written bytes.
type tail struct {
	data  []byte
	limit int
}

func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if excess := len(t.data) - t.limit; excess > 0 {
		t.data = append(t.data[:0], t.data[excess:]...)
	}
	return len(data), nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.data, []byte("?"))) }

// exitError means that a function ended with another exit code than 0.
type exitError struct {
	// Function names the function.
	Function string
	// Code is the exit code, or -1 if a signal ended it.
	Code int
	// Complaint is the end of its standard error.
	Complaint string
	// Results are the results that it gave nevertheless.
	Results []result
}

// Error returns the exit code and the standard error of the function.
func (e *exitError) Error() string {
	text := fmt.Sprintf("%s: it ended with exit code %d", e.Function, e.Code)
	if e.Code < 0 {
		text = e.Function + ": it was ended by a signal"
	}
	if len(e.Results) > 0 {
		text += ": " + listed(e.Results)
	}
	if e.Complaint != "" {
		text += ": " + strings.Join(strings.Fields(e.Complaint), " ")
	}
	return text
}

// resultError means that a function gave results with the severity error.
type resultError struct {
	// Function names the function.
	Function string
	// Results are those with the severity error.
	Results []result
}

// Error returns the results.
func (e *resultError) Error() string { return e.Function + ": " + listed(e.Results) }

// Place returns the function.
func (e *resultError) Place() string { return e.Function }

// outputError is the error for an output of a function that is no ResourceList.
type outputError struct {
	// Function names the function.
	Function string
	// Err is the mistake.
	Err error
}

// Error names the function and the mistake.
func (e *outputError) Error() string { return e.Function + ": its output: " + e.Err.Error() }

// Place returns the function.
func (e *outputError) Place() string { return e.Function }

// Unwrap returns the mistake.
func (e *outputError) Unwrap() error { return e.Err }

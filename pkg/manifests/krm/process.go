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
		var results []result
		if list, parseErr := parse(stdout.data.Bytes()); parseErr == nil {
			results = list.results
		}
		return nil, f.exitError(exit.ExitCode(), results, stderr.String())
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

// exitError describes the end of a function with another exit code than 0, or -1 if a signal ended it: by the
// results that it gave nevertheless, and the end of its standard error.
func (f Function) exitError(code int, results []result, complaint string) error {
	text := fmt.Sprintf("%s: it ended with exit code %d", f.label(), code)
	if code < 0 {
		text = f.label() + ": it was ended by a signal"
	}
	if len(results) > 0 {
		text += ": " + listed(results)
	}
	if complaint != "" {
		text += ": " + strings.Join(strings.Fields(complaint), " ")
	}
	return errors.New(text)
}

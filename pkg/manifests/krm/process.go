// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package krm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"time"

	"github.com/corbel-run/corbel/pkg/manifests"
)

// run runs the function with an input and returns its output.
func (f Function) run(ctx context.Context, input []byte) (output []byte, err error) {
	start := time.Now()
	ctx, cancel := context.WithTimeoutCause(ctx, f.Timeout, context.DeadlineExceeded)
	defer cancel()
	stdout := &limited{limit: f.OutputBytes, exceeded: cancel}
	stderr := &tail{limit: maxComplaint}
	// What is run is up to the author of the operator.
	command := exec.CommandContext(ctx, f.Path, f.Args...)
	command.Stdin, command.Stdout, command.Stderr = bytes.NewReader(input), stdout, stderr
	command.Dir = f.Directory
	command.Env = append([]string{}, f.Environment...) // nil would be the operator's own
	// Processes that it leaves behind may keep its output open.
	command.WaitDelay = time.Second
	ownGroup(command)
	err = command.Run()
	if command.Process != nil {
		endGroup(command.Process.Pid)
	}
	var exit *exec.ExitError
	switch {
	case stdout.over:
		return nil, &LimitError{Function: f.label(), Bytes: f.OutputBytes}
	case ctx.Err() != nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		return nil, &manifests.RenderTimeoutError{Generator: f.label(), After: time.Since(start), Err: ctx.Err()}
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s: %w", f.label(), ctx.Err())
	case errors.As(err, &exit):
		failed := &ExitError{Function: f.label(), Code: exit.ExitCode(), Complaint: stderr.String()}
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

// limited keeps what is written up to a limit.
type limited struct {
	data     bytes.Buffer
	limit    int64
	over     bool
	exceeded func()
}

func (l *limited) Write(data []byte) (int, error) {
	if int64(l.data.Len()+len(data)) > l.limit {
		l.over = true
		l.exceeded()
		return 0, errors.New("it is too much")
	}
	return l.data.Write(data)
}

// tail keeps the end of what is written.
type tail struct {
	data  []byte
	limit int
}

func (t *tail) Write(data []byte) (int, error) {
	t.data = append(t.data, data...)
	if over := len(t.data) - t.limit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	return len(data), nil
}

func (t *tail) String() string { return string(bytes.ToValidUTF8(t.data, []byte("?"))) }

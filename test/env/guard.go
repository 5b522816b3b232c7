// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
)

// guardScript waits for the end of its standard input, which is a pipe that only
// our process holds open: it closes when our process ends, in whatever way. Then
// the script removes what must not stay behind and kills its process group,
// itself included. The removal comes first, as nothing comes after, and may need a
// second try, because the programs still write.
const guardScript = `read -r line; rm -rf "$@" || rm -rf "$@"; kill -9 0`

// A guard sees to it that no process of an environment survives ours. It is a tiny
// shell that leads a process group, into which all other processes are started.
//
// This works for programs that know nothing of it, and leaves no gap:
//   - The group's number cannot be reused by other processes, because its leader lives until
//     the group is killed.
//   - A process that is just being started still holds our end of the pipe, which
//     is closed by its exec; by then it has joined the group. So the guard cannot
//     wake between a fork and the joining, and miss it.
//
// A group of its own also keeps Ctrl-C away from the processes: the terminal
// interrupts us, and we stop them in order. The kernel's parent-death signal would
// not do; it follows the thread that forked, and exists on Linux only.
type guard struct {
	shell    *exec.Cmd
	lifeline *os.File
}

// newGuard starts a guard that removes the given folders should our process end
// without calling end.
func newGuard(remove ...string) (*guard, error) {
	stdin, lifeline, err := os.Pipe() // both ends are closed on exec
	if err != nil {
		return nil, fmt.Errorf("start the guard: %w", err)
	}
	defer stdin.Close()
	shell := exec.Command("/bin/sh", append([]string{"-c", guardScript, "corbel-env-guard"}, remove...)...)
	shell.Stdin = stdin
	if err := leadGroup(shell); err != nil {
		return nil, errors.Join(err, lifeline.Close())
	}
	if err := shell.Start(); err != nil {
		return nil, fmt.Errorf("start the guard: %w", errors.Join(err, lifeline.Close()))
	}
	return &guard{shell: shell, lifeline: lifeline}, nil
}

// adopt makes a command, not yet started, a member of the guarded group.
func (g *guard) adopt(command *exec.Cmd) {
	joinGroup(command, g.shell.Process.Pid)
}

// end kills the group. Until the shell is waited for, its number stays in use, so
// the signal cannot reach another process.
func (g *guard) end() error {
	err := killGroup(g.shell.Process.Pid)
	_ = g.shell.Wait() // says that it was killed, which we know
	if err := errors.Join(err, g.lifeline.Close()); err != nil {
		return fmt.Errorf("end the guard: %w", err)
	}
	return nil
}

// Adopt makes a command, not yet started, one that does not outlive the
// environment: however this process ends, the command is killed then. It also
// keeps Ctrl-C away from it. To end it in order, stop it before the environment.
func (e *Environment) Adopt(command *exec.Cmd) { e.guard.adopt(command) }

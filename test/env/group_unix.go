// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package env

import (
	"os"
	"os/exec"
	"syscall"
)

// leadGroup makes a command, not yet started, the leader of a process group.
func leadGroup(command *exec.Cmd) error {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return nil
}

// joinGroup makes a command, not yet started, a member of the group of a leader.
func joinGroup(command *exec.Cmd, leader int) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pgid: leader}
}

// killGroup kills all processes of the group of a leader.
func killGroup(leader int) error { return syscall.Kill(-leader, syscall.SIGKILL) }

func pause(p *os.Process) error  { return p.Signal(syscall.SIGSTOP) }
func resume(p *os.Process) error { return p.Signal(syscall.SIGCONT) }

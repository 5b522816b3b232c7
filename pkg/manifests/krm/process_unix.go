// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package krm

import (
	"os/exec"
	"syscall"
)

// ownGroup puts the process into a group of its own, and ends the group where
// otherwise only the process would be ended.
func ownGroup(command *exec.Cmd) {
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
}

// endGroup ends the processes that outlive it.
func endGroup(pid int) { _ = syscall.Kill(-pid, syscall.SIGKILL) }

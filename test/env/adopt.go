// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package env

import "os/exec"

// Adopt makes a command, not yet started, one that does not outlive the
// environment: however this process ends, the command is killed then. It also
// keeps Ctrl-C away from it. To end it in order, stop it before the environment.
func (e *Environment) Adopt(command *exec.Cmd) { e.guard.adopt(command) }

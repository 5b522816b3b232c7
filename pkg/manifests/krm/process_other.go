// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package krm

import "os/exec"

// There are no process groups here; only the process itself is ended.
func ownGroup(*exec.Cmd) {}
func endGroup(int)       {}

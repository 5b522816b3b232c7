// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package env

import (
	"errors"
	"os"
	"os/exec"
)

// errNoGroups ends the start of an environment, so that the functions below are not called.
var errNoGroups = errors.New("a control plane needs process groups, which this system lacks: use a cluster, or on Windows the Windows Subsystem for Linux")

func leadGroup(*exec.Cmd) error { return errNoGroups }
func joinGroup(*exec.Cmd, int)  {}
func killGroup(int) error       { return errNoGroups }
func pause(*os.Process) error   { return errNoGroups }
func resume(*os.Process) error  { return errNoGroups }

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package subprocess runs a piece of work in a child process: the program itself,
// started once more, with limits of time, memory and output, with an empty
// environment and without the files that the program has open. Work and answer are
// bytes on pipes. It works on Linux.
package subprocess

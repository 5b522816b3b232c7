// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
)

// Why a reference is refused, if it is not about something that does not exist or does not parse.
var (
	// errRemote means that it leads to another machine.
	errRemote = errors.New("it leads to another machine, and nothing is fetched; put a copy below the root")
	// errOutside means that it leads out of the root.
	errOutside = errors.New("it leads out of the root")
	// errPlugin means that it would run code.
	errPlugin = errors.New("only built-in generators, transformers and validators are run")
)

// shorten keeps a long value from filling a message.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

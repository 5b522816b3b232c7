// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package kustomize

import (
	"errors"
	"fmt"
)

// Why a reference is refused; a referenceError wraps one of them, or
// is about something that does not exist or does not parse.
var (
	// errRemote means that it leads to another machine.
	errRemote = errors.New("it leads to another machine, and nothing is fetched; put a copy below the root")
	// errOutside means that it leads out of the root.
	errOutside = errors.New("it leads out of the root")
	// errPlugin means that it would run code.
	errPlugin = errors.New("only built-in generators, transformers and validators are run")
)

// referenceError is a mistake in a kustomization or a file that it refers to.
type referenceError struct {
	// File is the file, or the place in it, that holds the field.
	File string
	// Field is the field, such as "resources[2]"; it is empty if the mistake is in no field.
	Field string
	// Value is the value of the field; it is empty where that may be long or secret.
	Value string
	// Err is the mistake.
	Err error
}

// Error returns the place and the mistake.
func (e *referenceError) Error() string {
	switch {
	case e.Field == "":
		return fmt.Sprintf("%s: %v", e.File, e.Err)
	case e.Value == "":
		return fmt.Sprintf("%s: %s: %v", e.File, e.Field, e.Err)
	}
	return fmt.Sprintf("%s: %s: %q: %v", e.File, e.Field, shorten(e.Value), e.Err)
}

// Unwrap returns the mistake.
func (e *referenceError) Unwrap() error { return e.Err }

// shorten keeps a long value from filling a message.
func shorten(text string) string {
	const most = 100
	if len(text) <= most {
		return text
	}
	return text[:most] + "..."
}

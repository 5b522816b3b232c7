// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package excess has the error of a rendering that exceeds one of its limits.
package excess

// Error says which limit was exceeded.
type Error struct{ Message string }

// Error returns the message.
func (e *Error) Error() string { return e.Message }

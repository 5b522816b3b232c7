// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard runs the code of authors: hooks, generators, handlers. Such code may
// panic, never return, or return an error with methods that panic. Here a panic becomes an error.
//
// [Call] and [Into] run the code in the goroutine of the caller. [Run] has a deadline, and does not
// wait for a call that exceeds it.
package guard

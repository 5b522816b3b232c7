// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard runs code that is not ours: hooks, generators, handlers. Such code may
// panic, end its goroutine, never return, or return an error with methods that panic. A panic in
// the goroutine of a controller ends the process, and runtime.Goexit ends one of its
// workers for good; here both become errors.
//
// [Call] waits until the code returns. [Run] has a deadline, and does not wait for a call that
// exceeds it. [Into] is for code that runs in the goroutine of the caller, where the
// end of the goroutine is no concern.
package guard

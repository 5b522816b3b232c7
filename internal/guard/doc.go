// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package guard runs code that is not ours: hooks, generators, handlers. Such code may
// panic, end its goroutine, never return, or return an error with methods that panic. A panic in
// the goroutine of a controller ends the process, and runtime.Goexit takes one of its
// workers away for good; here both become errors.
//
// [Call] waits until the code returns. [Run] has a deadline; what does not return in time
// is left behind. [Into] is for code that runs in the goroutine of the caller, where the
// end of the goroutine is no concern.
package guard

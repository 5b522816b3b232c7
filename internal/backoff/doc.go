// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package backoff computes how long to wait before the next attempt: Delay and Jitter are the
// arithmetic, RateLimiter is for a controller's queue after errors, Streak is for an object that waits
// for something (short delays while there is progress, longer ones while there is none), and
// Throttle limits repeated actions on one object.
package backoff

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package backoff

import (
	"sync/atomic"
	"time"
)

// Streak counts attempts in a row that came to nothing. The zero value has none. It is
// safe for concurrent use.
type Streak struct{ attempts atomic.Int32 }

// Next counts one more attempt and returns the delay before the next one, which doubles
// from base to limit.
func (s *Streak) Next(base, limit time.Duration) time.Duration {
	return Delay(int(s.attempts.Add(1)-1), base, limit)
}

// Idle counts one more attempt and returns the delay of something that waits for an event,
// in case the event does not come: 50 ms, doubling up to 10 s.
func (s *Streak) Idle() time.Duration { return s.Next(activityBase, activityLimit) }

// Reset ends the streak: the next delay is the shortest again.
func (s *Streak) Reset() { s.attempts.Store(0) }

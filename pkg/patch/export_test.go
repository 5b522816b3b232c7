// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

package patch

import "time"

// Age makes the last look at the server older.
func (h *Helper) Age(d time.Duration) { h.confirmed = h.confirmed.Add(-d) }

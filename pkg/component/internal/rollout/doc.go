// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which components of a fleet are updated next. It is pure: it turns the
// states of the components into a decision about which of them may start. The caller keeps the
// states, and acts.
package rollout

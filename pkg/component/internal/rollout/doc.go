// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package rollout decides which components of a fleet are updated next. It is pure: what is
// known of the components goes in, and who may start comes out. The caller keeps what is known
// of them, and acts.
package rollout

// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package kept keeps what is expensive to make for whoever wants it again, by a
// digest of all that it is made of, and within a limit of memory.
package kept

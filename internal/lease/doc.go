// SPDX-FileCopyrightText: The Corbel Authors
// SPDX-License-Identifier: Apache-2.0

// Package lease judges by the Lease of a leader election whether an operator is alive. The commands that look for an
// operator use the same rule, because it is from here.
package lease
